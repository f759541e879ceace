// Package writers holds "the other writer": a C program (testdata) that writes and reads
// memory by every way there is beside a program's own loads and stores, while another
// thread registers that memory and its neighbours, deregisters them, moves data there by
// RDMA, forks, and maps and unmaps memory. It checks every byte. docs/VERBS.md has the
// table of these ways, and each row names its test here.
//
// By hand, for an hour, from the top of the checkout:
//
//	gcc -D_GNU_SOURCE -O2 -o build/writers test/writers/testdata/*.c -libverbs
//	build/urdma run -- build/writers --seconds 3600 --dir /var/tmp
//
// --way, --kind and --seed, which it prints, take one cell; --fault moves pages in place
// of registering them, which every cell has to notice.
package writers
