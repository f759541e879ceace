package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urdma/verbs"
)

func serve(ctx context.Context, address string, once bool, spin time.Duration) error {
	client, err := verbs.Open("")
	if err != nil {
		return err
	}
	defer client.Close()
	listener, err := client.Listen(address)
	if err != nil {
		return err
	}
	fmt.Println("listening at", listener.Addr())
	for {
		request, err := listener.Next(ctx)
		if err != nil {
			return err
		}
		if once {
			return serveOne(ctx, request, spin)
		}
		go func() {
			if err := serveOne(ctx, request, spin); err != nil {
				fmt.Println("FAILED:", err)
			}
		}()
	}
}

// serveOne returns every message. When the client disconnects, its RDMA Write, with the pattern of message 0, must
// have arrived.
func serveOne(ctx context.Context, request *verbs.Request, spin time.Duration) error {
	var target, inbox *verbs.MR
	options := verbs.ConnOptions{Spin: spin}
	options.Prepare = func(conn *verbs.Conn) (err error) {
		if target, err = conn.PD().AllocMemory(offered, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead); err != nil {
			return err
		}
		if inbox, err = conn.PD().AllocMemory(offered, verbs.LocalWrite); err != nil {
			return err
		}
		if err = conn.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{inbox.SGE(0, offered)}}); err != nil {
			return err
		}
		return conn.SetPrivateData(putRemote(target.Remote(0)))
	}
	conn, err := request.Accept(ctx, &options)
	if err != nil {
		return err
	}
	defer conn.Close()
	for n := 1; ; n++ {
		message, err := conn.Recv(ctx)
		switch {
		case errors.Is(err, verbs.ErrDisconnected):
			if err := check(target.Bytes(), 0); err != nil {
				return fmt.Errorf("after the client's Write: %w", err)
			}
			fmt.Printf("OK: %v sent %d messages and wrote %d bytes\n", conn.RemoteAddr(), n-1, offered)
			return nil
		case err != nil:
			return err
		}
		length := int(message.ByteLen)
		if err := check(inbox.Bytes()[:length], n); err != nil {
			return err
		}
		// The answer is sent from the receive buffer, so it must complete before the next receive is posted.
		if err := conn.Send(ctx, inbox.SGE(0, length)); err != nil {
			return err
		}
		if err := conn.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{inbox.SGE(0, offered)}}); err != nil {
			return err
		}
	}
}
