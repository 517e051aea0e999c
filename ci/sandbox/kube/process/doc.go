// Package process starts programs that end with the process that started them, however that ends, and keeps what they
// print in files of bounded size. It never restarts one.
package process
