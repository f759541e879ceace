package sim

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

func TestZY(t *testing.T) {
	s, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	r := newSeedRun(s, 200)
	fmt.Println(r.text)
	r.world.EnableTrace(func(l string) { fmt.Println(l) })
	fmt.Println(r.run())
	for i := range 2 {
		fmt.Printf("%+v\n", r.world.Peers[i].Conn.Stats())
	}
}
