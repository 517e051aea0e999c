// Package scenarios holds the stories of creating a cluster, told from end to end: the real castle program with the real
// tools, in a proving ground that goes wrong on demand. It has nothing but tests, and none of them believes an exit code
// alone: what happened is looked up in the APIs, the states and the records.
package scenarios
