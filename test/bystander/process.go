package bystander

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// environment makes a test's program an end of the connection: role, socket, address, seed.
const environment = "URDMA_TEST_BYSTANDER"

// Command is the environment variable that makes the test's program one end, if its TestMain calls Main: "server" or
// "client". The program prints "ready" when it listens or is connected, and from time to time the number of its
// round. On SIGTERM the client says goodbye, and the server ends with it. Errors are printed before exit status 1.
func Command(role, socket, address string, seed uint64) string {
	return fmt.Sprintf("%s=%s %s %s %d", environment, role, socket, address, seed)
}

// Main runs one end of a connection if the environment says so, and then does not return.
func Main() {
	args := strings.Fields(os.Getenv(environment))
	if len(args) != 4 {
		return
	}
	seed, _ := strconv.ParseUint(args[3], 10, 64) // as Command wrote it
	run := runClient
	if args[0] == "server" {
		run = runServer
	}
	if err := run(args[1], args[2], seed); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("finished")
	os.Exit(0)
}

func runServer(socket, address string, seed uint64) error {
	s, err := Serve(socket, address, seed)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if err := s.Accept(context.Background()); err != nil {
		return err
	}
	return s.Run(context.Background())
}

func runClient(socket, address string, seed uint64) error {
	c, err := Dial(context.Background(), socket, address, seed)
	if err != nil {
		return err
	}
	c.Pause = 2 * time.Millisecond
	stop, term := make(chan struct{}), make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() { <-term; close(stop) }()
	fmt.Println("ready")
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			fmt.Println("round", c.Rounds())
		}
	}()
	return c.Run(context.Background(), stop)
}
