// Package lab sets up urdmads joined by wires and runs programs on them, for the end-to-end tests and the
// benchmarks. A lab owns a temporary directory and every process started in it: Close ends them by their process
// ids and removes the directory. If the lab's own process is killed, the kernel ends them (PR_SET_PDEATHSIG,
// prctl(2)).
//
// It uses urdma only from outside: the files of build/, urdma.json, and facts about processes in /proc.
package lab
