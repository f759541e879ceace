package main

import (
	"context"
	"encoding/binary"
	"fmt"

	"urdma/verbs"
)

// ask sends messages of all lengths and checks the server's answers.
func ask(ctx context.Context, address string, count int) error {
	client, err := verbs.Open("")
	if err != nil {
		return err
	}
	defer client.Close()
	conn, err := client.Dial(ctx, address, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	memory, err := conn.PD().AllocMemory(longest+8, verbs.LocalWrite)
	if err != nil {
		return err
	}
	message, answer := memory.Bytes()[:longest], memory.Bytes()[longest:]
	for n := range count {
		length := n * 37 % (longest + 1)
		for i := range message[:length] {
			message[i] = byte(n*7 + i)
		}
		if err := conn.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{memory.SGE(longest, 8)}}); err != nil {
			return err
		}
		if err := conn.Send(ctx, memory.SGE(0, length)); err != nil {
			return err
		}
		if _, err := conn.Recv(ctx); err != nil {
			return err
		}
		if got, want := binary.BigEndian.Uint64(answer), sum(message[:length]); got != want {
			return fmt.Errorf("message %d of %d bytes: the server answers %#x, expected %#x", n, length, got, want)
		}
	}
	fmt.Printf("OK: %d messages answered\n", count)
	return nil
}
