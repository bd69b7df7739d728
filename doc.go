// Package stet keeps what AI agents did, every conversation and every file, and
// lets people take any of it back.
package stet
