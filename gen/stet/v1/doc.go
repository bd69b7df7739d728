// Package stetv1 is our own wire format: the records that we store beside the
// reference's messages and the services that we serve.
package stetv1
