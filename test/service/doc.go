// Package service tests urdmad as a service: scripts install the build and run it under a real systemd. See
// service.sh.
package service
