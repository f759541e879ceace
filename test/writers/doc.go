// Package writers tests accesses to a program's memory other than its own loads and stores. A C program (testdata)
// writes and reads memory in every such way, while another thread registers that memory and its neighbours,
// deregisters them, moves data there by RDMA, forks, and maps and unmaps memory. It checks every byte. docs/VERBS.md
// has the table of these ways; each row names its test here.
//
// To run it by hand for an hour, from the top of the checkout:
//
//	gcc -D_GNU_SOURCE -O2 -o build/writers test/writers/testdata/*.c -libverbs
//	build/urdma run -- build/writers --seconds 3600 --dir /var/tmp
//
// It prints values for --way, --kind and --seed, which repeat a single case. With --fault it moves pages instead of
// registering them; every case must notice that.
package writers
