package faults

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"urdma/test/bystander"
	"urdma/verbs"
)

// programEnv makes this program one of the programs below, with arguments.
const programEnv = "URDMA_TEST_FAULTS_PROGRAM"

// program runs one of them if the environment says so, and then does not return.
func program() {
	args := strings.Fields(os.Getenv(programEnv))
	if len(args) == 0 {
		return
	}
	programs := map[string]func(args ...string) error{"hog": hog, "server": reopen, "client": reopen}
	if err := programs[args[0]](args...); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// hog registers memory and writes to all of it.
func hog(args ...string) error {
	c, err := verbs.Open(args[1])
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

// reopen is an end of a checked pair that opens and connects again whenever its connection breaks; arguments are its
// role, socket and address. The client prints "connected", and sometimes "round"; both print "device fatal" for the
// event of that name.
func reopen(args ...string) error {
	for ; ; time.Sleep(20 * time.Millisecond) {
		var err error
		if args[0] == "server" {
			err = serveOnce(args[1], args[2])
		} else {
			err = workOnce(args[1], args[2])
		}
		fmt.Println(err)
	}
}

func serveOnce(socket, address string) error {
	s, err := bystander.Serve(socket, address, 3)
	if err != nil {
		return err
	}
	defer s.Close()
	watched := watch(s.Client)
	defer watched()
	if err := s.Accept(context.Background()); err != nil {
		return err
	}
	return s.Run(context.Background())
}

func workOnce(socket, address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := bystander.Dial(ctx, socket, address, 3)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Pause = 2 * time.Millisecond
	watched := watch(c.Client)
	defer watched()
	fmt.Println("connected")
	ended, said := make(chan struct{}), make(chan struct{})
	go func() {
		sayRounds(c, ended)
		close(said)
	}()
	err = c.Run(context.Background(), nil)
	close(ended)
	<-said // no more rounds are reported for a connection that has ended
	return err
}

func sayRounds(c *bystander.Client, ended <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last := int64(0); ; {
		select {
		case <-tick.C:
		case <-ended:
			return
		}
		if now := c.Rounds(); now > last {
			fmt.Println("round", now)
			last = now
		}
	}
}

// watch opens the client's device. The returned function returns the asynchronous events about the device's end; it
// waits for them, unless urdmad still answers after a moment.
func watch(c *verbs.Client) (say func()) {
	x, err := c.Devices()[0].Open()
	if err != nil {
		return func() { fmt.Println(err) }
	}
	return func() {
		late, lives := time.After(patience), time.After(time.Second)
		for {
			select {
			case ev, ok := <-x.Events():
				if !ok {
					return
				}
				if ev.Type == verbs.EventDeviceFatal {
					fmt.Println("device fatal")
					return
				}
			case <-lives:
				if pd, err := x.AllocPD(); err == nil {
					_ = pd.Close()
					return
				}
			case <-late:
				return
			}
		}
	}
}
