package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"urdma/verbs"
)

func ping(ctx context.Context, address string, count, size int, spin time.Duration) error {
	client, err := verbs.Open("")
	if err != nil {
		return err
	}
	defer client.Close()
	conn, err := client.Dial(ctx, address, &verbs.ConnOptions{Spin: spin})
	if err != nil {
		return err
	}
	defer conn.Close()
	remote, err := getRemote(conn.PrivateData())
	if err != nil {
		return err
	}
	out, err := conn.PD().AllocMemory(offered, verbs.LocalWrite)
	if err != nil {
		return err
	}
	in, err := conn.PD().AllocMemory(offered, verbs.LocalWrite)
	if err != nil {
		return err
	}
	if err := messages(ctx, conn, out, in, count, size); err != nil {
		return err
	}
	if err := writeAndRead(ctx, conn, remote, out, in); err != nil {
		return err
	}
	fmt.Println("OK: all data was right")
	return conn.Close()
}

func messages(ctx context.Context, conn *verbs.Conn, out, in *verbs.MR, count, size int) error {
	took := make([]time.Duration, count)
	for n := range took {
		fill(out.Bytes()[:size], n+1)
		if err := conn.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{in.SGE(0, size)}}); err != nil {
			return err
		}
		start := time.Now()
		if err := conn.Send(ctx, out.SGE(0, size)); err != nil {
			return err
		}
		if _, err := conn.Recv(ctx); err != nil {
			return err
		}
		took[n] = time.Since(start)
		if err := check(in.Bytes()[:size], n+1); err != nil {
			return err
		}
	}
	if count > 0 {
		slices.Sort(took)
		fmt.Printf("%d messages of %d bytes to and fro: median %v, 99 %% within %v\n", count, size, took[count/2],
			took[count*99/100])
	}
	return nil
}

func writeAndRead(ctx context.Context, conn *verbs.Conn, remote verbs.Remote, out, in *verbs.MR) error {
	fill(out.Bytes(), 0)
	start := time.Now()
	if err := conn.Write(ctx, remote, out.SGE(0, offered)); err != nil {
		return err
	}
	wrote := time.Since(start)
	start = time.Now()
	if err := conn.Read(ctx, remote, in.SGE(0, offered)); err != nil {
		return err
	}
	fmt.Printf("RDMA Write of %d bytes: %v, RDMA Read: %v\n", offered, wrote, time.Since(start))
	return check(in.Bytes(), 0)
}
