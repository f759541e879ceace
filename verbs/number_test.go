package verbs_test

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"testing"

	"urdma/verbs"
)

// ExampleQP_ConnectNumber connects two ends, which may be two programs on two hosts, by queue pair number:
// they exchange their numbers over TCP, and each sends a message.
func ExampleQP_ConnectNumber() {
	client, err := verbs.Open("")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		log.Fatal(err)
	}
	heard := make(chan string)
	go func() {
		tcp, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		text, err := greet(client, tcp, "hello, client")
		if err != nil {
			log.Fatal(err)
		}
		heard <- text
	}()
	tcp, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	text, err := greet(client, tcp, "hello, server")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-heard)
	fmt.Println(text)
}

// greet exchanges numbers over tcp, connects, sends text and returns the peer's message.
func greet(client *verbs.Client, tcp net.Conn, text string) (string, error) {
	x, err := client.Devices()[0].Open()
	if err != nil {
		return "", err
	}
	pd, err := x.AllocPD()
	if err != nil {
		return "", err
	}
	cq, err := x.CreateCQ(16, nil)
	if err != nil {
		return "", err
	}
	q, err := pd.CreateQP(cq, cq, verbs.QPOptions{})
	if err != nil {
		return "", err
	}
	memory, err := pd.AllocMemory(64, verbs.LocalWrite)
	if err != nil {
		return "", err
	}
	if err := q.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{memory.SGE(32, 32)}}); err != nil {
		return "", err
	}
	if err := exchange(q, tcp); err != nil {
		return "", err
	}
	n := copy(memory.Bytes()[:32], text)
	if err := q.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled,
		SGE: []verbs.SGE{memory.SGE(0, n)}}); err != nil {
		return "", err
	}
	var got string
	var done [2]verbs.Completion
	for count := 0; count < 2; {
		n, err := cq.Poll(done[:])
		if err != nil {
			return "", err
		}
		for _, c := range done[:n] {
			if c.Status != verbs.StatusSuccess {
				return "", fmt.Errorf("%v: %v", c.Op, c.Status)
			}
			if c.Op == verbs.DidRecv {
				got = string(memory.Bytes()[32 : 32+c.ByteLen])
			}
		}
		count += n
	}
	return got, nil
}

// exchange sends the peer our number, receives its number and connects.
func exchange(q *verbs.QP, tcp net.Conn) error {
	var peer verbs.Number
	if err := json.NewEncoder(tcp).Encode(q.Number()); err != nil {
		return err
	}
	if err := json.NewDecoder(tcp).Decode(&peer); err != nil {
		return err
	}
	return q.ConnectNumber(peer)
}

// TestConnectNumber runs the example's two programs.
func TestConnectNumber(t *testing.T) {
	d := startDaemon(t)
	near, far := net.Pipe()
	type result struct {
		text string
		err  error
	}
	heard := make(chan result, 2)
	for i, end := range []net.Conn{near, far} {
		client := d.open()
		go func() {
			text, err := greet(client, duplex{end}, fmt.Sprint("I am ", i))
			heard <- result{text, err}
		}()
	}
	texts := map[string]bool{}
	for range 2 {
		r := <-heard
		ok(t, r.err)
		texts[r.text] = true
	}
	if !texts["I am 0"] || !texts["I am 1"] {
		t.Errorf("heard %v", texts)
	}
}

// duplex writes without waiting for the reader, as TCP does.
type duplex struct{ net.Conn }

func (d duplex) Write(b []byte) (int, error) {
	kept := append([]byte(nil), b...)
	go func() { _, _ = d.Conn.Write(kept) }() // the reader at the other end would notice
	return len(b), nil
}
