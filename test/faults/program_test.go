package faults

import (
	"fmt"
	"os"
	"strings"

	"urdma/verbs"
)

// programEnv tells this program to be one of the programs below, with arguments.
const programEnv = "URDMA_TEST_FAULTS_PROGRAM"

// program is one of them if the environment says so, and then doesn't return.
func program() {
	args := strings.Fields(os.Getenv(programEnv))
	if len(args) == 0 {
		return
	}
	if err := map[string]func(socket string) error{"hog": hog}[args[0]](args[1]); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// hog registers memory and writes to all of it.
func hog(socket string) error {
	c, err := verbs.Open(socket)
	if err != nil {
		return err
	}
	x, err := c.Devices()[0].Open()
	if err != nil {
		return err
	}
	pd, err := x.AllocPD()
	if err != nil {
		return err
	}
	for range 4 {
		m, err := pd.AllocMemory(64<<20, verbs.LocalWrite)
		if err != nil {
			return err
		}
		for i := range m.Bytes() {
			m.Bytes()[i] = 1
		}
	}
	return nil
}
