package control_test

import (
	"testing"
	"time"

	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// TestCleanUpInParts: whatever a client had of which kind, no turn removes more than a
// part of it when it has gone, and all of it is removed. It has had as much as the limits
// allow.
func TestCleanUpInParts(t *testing.T) {
	type request = func(pd, channel uint32) error
	made := func(_ abi.HandleMessage, err error) error { return err }
	for name, kind := range map[string]struct {
		most int // that a client may have
		make func(c *client) request
	}{
		"protection domains": {1024, func(c *client) request {
			return func(_, _ uint32) error {
				return made(call[abi.HandleMessage, abi.HandleMessage](c, abi.AllocPD, abi.HandleMessage{Handle: 1}))
			}
		}},
		"regions": {16384, func(c *client) request {
			return func(pd, _ uint32) error {
				_, err := call[abi.RegMRRequest, abi.RegMRResponse](c, abi.RegMR,
					abi.RegMRRequest{PD: pd, Access: abi.AccessLocalWrite})
				return err
			}
		}},
		"windows": {16384, func(c *client) request {
			return func(pd, _ uint32) error {
				_, err := call[abi.AllocMWRequest, abi.AllocMWResponse](c, abi.AllocMW,
					abi.AllocMWRequest{PD: pd, Type: abi.MWType1})
				return err
			}
		}},
		"completion queues": {8192, func(c *client) request {
			return func(_, _ uint32) error {
				_, err := call[abi.CreateCQRequest, abi.CQResponse](c, abi.CreateCQ, abi.CreateCQRequest{Context: 1, CQE: 1})
				return err
			}
		}},
		"shared receive queues": {1024, func(c *client) request {
			return func(pd, _ uint32) error {
				_, err := call[abi.CreateSRQRequest, abi.SRQResponse](c, abi.CreateSRQ,
					abi.CreateSRQRequest{PD: pd, MaxWR: 1, MaxSGE: 1})
				return err
			}
		}},
		"queue pairs": {3072, func(c *client) request {
			var cq abi.CQResponse
			return func(pd, _ uint32) (err error) {
				if cq.Handle == 0 {
					cq, err = call[abi.CreateCQRequest, abi.CQResponse](c, abi.CreateCQ, abi.CreateCQRequest{Context: 1, CQE: 1})
				}
				if err == nil {
					_, err = call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP,
						abi.CreateQPRequest{PD: pd, QPType: abi.QPTypeRC, SendCQ: cq.Handle, RecvCQ: cq.Handle})
				}
				return err
			}
		}},
		"completion channels": {8192, func(c *client) request {
			return func(_, _ uint32) error {
				return made(call[abi.HandleMessage, abi.HandleMessage](c, abi.CreateChannel, abi.HandleMessage{Handle: 1}))
			}
		}},
		"event channels": {2048, func(c *client) request {
			return func(_, _ uint32) error {
				return made(call[abi.Header, abi.HandleMessage](c, abi.CMCreateChannel, abi.Header{}))
			}
		}},
		"ids": {8192, func(c *client) request {
			return func(_, channel uint32) error {
				return made(call[abi.CMCreateIDRequest, abi.HandleMessage](c, abi.CMCreateID,
					abi.CMCreateIDRequest{Channel: channel, PS: abi.PSTCP}))
			}
		}},
		"listeners": {8192, func(c *client) request {
			return func(_, channel uint32) error {
				id, err := call[abi.CMCreateIDRequest, abi.HandleMessage](c, abi.CMCreateID,
					abi.CMCreateIDRequest{Channel: channel, PS: abi.PSTCP})
				if err == nil {
					_, err = call[abi.CMValueRequest, abi.CMBound](c, abi.CMListen, abi.CMValueRequest{ID: id.Handle, Value: 3})
				}
				return err
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := startEquipped(t, func(s *control.Server) { s.Devices[0].MaxQP = 4096 })
			pd, err := call[abi.HandleMessage, abi.HandleMessage](c, abi.AllocPD, abi.HandleMessage{Handle: 1})
			if err != nil {
				t.Fatal(err)
			}
			channel, err := call[abi.Header, abi.HandleMessage](c, abi.CMCreateChannel, abi.Header{})
			if err != nil {
				t.Fatal(err)
			}
			another := kind.make(c)
			for range kind.most - 8 { // some are there already
				if err := another(pd.Handle, channel.Handle); err != nil {
					t.Fatal(err)
				}
			}
			cleanUpInParts(t, r, c)
		})
	}
}

// cleanUpInParts has the client go.
func cleanUpInParts(t *testing.T, r *running, c *client) (turns int) {
	t.Helper()
	before, most, gone := 0, 0, make(chan struct{})
	var look func()
	look = func() {
		now := r.server.Objects()
		most = max(most, before-now)
		if now < before {
			turns++
		}
		if before = now; now == 0 {
			close(gone)
			return
		}
		r.server.Workers[0].Engine.Do(look)
	}
	r.server.Workers[0].Engine.Do(look)
	r.server.Workers[0].Wake()
	c.conn.Close()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the client does not go")
	}
	if most > control.RemovedPerTurn {
		t.Errorf("a turn removed %d objects", most)
	}
	return turns
}

// TestRegionsOfOneFileGo: of neighbours in a file more is to be moved for each that goes, so
// that a turn removes fewer.
func TestRegionsOfOneFileGo(t *testing.T) {
	r := start(t)
	c := opened(t, r)
	const regions, page = 4096, 4096
	file, err := addMemory(t, c, 2*regions*page)
	for i := range uint64(regions) {
		if err == nil {
			_, err = call[abi.RegMRRequest, abi.RegMRResponse](c, abi.RegMR,
				abi.RegMRRequest{PD: 2, Path: abi.PathShared, File: file, FileOffset: 2 * i * page, Length: page,
					Addr: 2 * i * page, IOVA: 2 * i * page})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if turns := cleanUpInParts(t, r, c); turns < 2*regions/control.RemovedPerTurn {
		t.Errorf("%d regions went in %d turns", regions, turns)
	}
}
