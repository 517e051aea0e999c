// Package services is the service network of a simulated cluster: it listens on every service address that has a ready
// endpoint, refuses where there is none, and answers DNS for the cluster's names. It carries TCP only, and never talks to
// anything but the API server and the endpoints.
package services
