// Package awsconfig finds the region, the endpoints and the credentials that the tools of AWS
// would use:
//
//	settings, err := awsconfig.Load(region)
//	settings.Region, settings.Endpoint("S3"), settings.Credentials
//
// They come from the variables of the environment, from the shared files (~/.aws/config and
// ~/.aws/credentials), from programs and roles that these name, from the container or from the
// machine. A profile that signs in (IAM Identity Center, aws login) is left to the program aws,
// which keeps what it needs for that.
//
// Credentials that expire are obtained again in time. No error has a secret.
package awsconfig
