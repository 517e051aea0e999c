// Package nodump keeps a process that holds secrets from being read by other processes of the same user.
package nodump
