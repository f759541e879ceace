package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	showCosts := flag.Bool("costs", false, "print how many lines of core and control name each attached feature")
	flag.Parse()
	if *showCosts {
		fail(costs(os.Stdout, "."))
		return
	}
	list, complaints, err := check(".")
	fail(err)
	printFanOut(os.Stdout, list)
	for _, c := range complaints {
		fmt.Fprintln(os.Stderr, c)
	}
	if len(complaints) > 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(2)
	}
}

// check returns the packages of the tree at root, and the violations in it.
func check(root string) ([]listed, []string, error) {
	list, err := listPackages(root)
	if err != nil {
		return nil, nil, err
	}
	missing, err := missingFiles(root)
	if err != nil {
		return nil, nil, err
	}
	complaints := append(rules.imports(list), parts(list)...)
	return list, append(complaints, missing...), nil
}
