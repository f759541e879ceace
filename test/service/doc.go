// Package service holds the tests of urdmad as a service: scripts that install
// what was built and run it under a real systemd. See service.sh.
package service
