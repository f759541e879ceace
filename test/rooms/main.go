package main

import (
	"fmt"
	"os"
)

func main() {
	complaints, err := check(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(2)
	}
	for _, c := range complaints {
		fmt.Println(c)
	}
	if len(complaints) > 0 {
		os.Exit(1)
	}
}

// check returns what breaks a rule in the module at root.
func check(root string) ([]string, error) {
	list, err := listPackages(root)
	if err != nil {
		return nil, err
	}
	complaints := rules.imports(list)
	source, err := measure(list)
	if err != nil {
		return nil, err
	}
	complaints = append(complaints, rules.limits(source)...)
	c, err := measureC(root)
	return append(complaints, rules.lines(c)...), err
}
