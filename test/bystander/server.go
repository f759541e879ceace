package bystander

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"urdma/verbs"
)

const (
	lentBytes    = 64 << 10
	messageBytes = 20000
	replyBytes   = 8 // number of the round, little-endian
	all          = verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite
)

// content is the data of a round of a connection; it also determines the message's length.
func content(b []byte, seed, round uint64) (message int) {
	r := rand.New(rand.NewPCG(seed, round))
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64())
	}
	return 1 + r.IntN(messageBytes)
}

// Server is the end that offers memory and receives.
type Server struct {
	Client       *verbs.Client
	listener     *verbs.Listener
	seed         uint64
	conn         *verbs.Conn
	box, offered *verbs.MR
	want         []byte
}

// Serve opens a client of the urdmad at the socket and listens.
func Serve(socket, address string, seed uint64) (*Server, error) {
	s := &Server{seed: seed, want: make([]byte, lentBytes)}
	var err error
	if s.Client, err = verbs.Open(socket); err != nil {
		return nil, err
	}
	if s.listener, err = s.Client.Listen(address); err != nil {
		s.Client.Close()
		return nil, err
	}
	return s, nil
}

// Address returns the address at which it listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Accept waits for the client.
func (s *Server) Accept(ctx context.Context) error {
	request, err := s.listener.Next(ctx)
	if err != nil {
		return err
	}
	s.conn, err = request.Accept(ctx, &verbs.ConnOptions{Prepare: func(c *verbs.Conn) error {
		if err := allocate(c, map[**verbs.MR]int{&s.box: messageBytes, &s.offered: lentBytes}); err != nil {
			return err
		}
		offered := binary.LittleEndian.AppendUint64(nil, s.offered.Addr())
		if err := c.SetPrivateData(binary.LittleEndian.AppendUint32(offered, s.offered.RKey())); err != nil {
			return err
		}
		return s.receive(c)
	}})
	return err
}

func allocate(c *verbs.Conn, sizes map[**verbs.MR]int) (err error) {
	for m, n := range sizes {
		if *m, err = c.PD().AllocMemory(n, all); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) receive(c *verbs.Conn) error {
	return c.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{s.box.SGE(0, messageBytes)}})
}

// Offered is memory that the other end may use, and nobody else.
func (s *Server) Offered() verbs.Remote { return s.offered.Remote(0) }

// Run checks and answers until the client says goodbye.
func (s *Server) Run(ctx context.Context) error {
	for round := uint64(0); ; round++ {
		got, err := s.conn.Recv(ctx)
		if err != nil {
			return fmt.Errorf("round %d of the serving end: %w", round, err)
		}
		if got.ByteLen == 0 {
			return nil
		}
		n := content(s.want, s.seed, round)
		if int(got.ByteLen) != n || !bytes.Equal(s.box.Bytes()[:n], s.want[:n]) {
			return fmt.Errorf("round %d: a message of %d bytes arrived as %d others", round, n, got.ByteLen)
		}
		if !bytes.Equal(s.offered.Bytes(), s.want) {
			return fmt.Errorf("round %d: offered memory holds others than the bytes written", round)
		}
		if err := s.receive(s.conn); err != nil {
			return err
		}
		if err := s.conn.SendBytes(ctx, binary.LittleEndian.AppendUint64(nil, round)); err != nil {
			return fmt.Errorf("answer of round %d: %w", round, err)
		}
	}
}

// Close ends the client.
func (s *Server) Close() { s.Client.Close() }
