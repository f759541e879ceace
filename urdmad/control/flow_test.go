package control_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"urdma/urdmad/control"
	"urdma/urdmad/core/rawpacket"
	"urdma/verbs/abi"
)

// startRaw starts a urdmad whose port allows raw packets, with a client that has a queue pair of type RAW_PACKET.
func startRaw(t *testing.T, access uint32) (r *running, c *client, pair uint32) {
	t.Helper()
	r, c = startEquipped(t, func(s *control.Server) {
		s.Devices[0].Frames, s.Devices[0].RawPackets = true, access
		s.Workers[0].Engine.Raw.Open(0, &rawpacket.Wire{Access: access})
	})
	return r, c, c.newRaw(t)
}

func (c *client) newRaw(t *testing.T) (pair uint32) {
	t.Helper()
	want := limitPair
	want.QPType = abi.QPTypeRawPacket
	return must[abi.QPResponse](t)(call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP, want)).Handle
}

func (c *client) newFlow(m abi.CreateFlowRequest) (uint32, error) {
	r, err := call[abi.CreateFlowRequest, abi.HandleMessage](c, abi.CreateFlow, m)
	return r.Handle, err
}

// TestFlows: which requests for flows are refused, and why.
func TestFlows(t *testing.T) {
	_, c, pair := startRaw(t, abi.RawNonIP)
	masked := [abi.FlowKey]byte{40: 1}
	for _, v := range []struct {
		name string
		m    abi.CreateFlowRequest
		want error
	}{
		{"a rule", abi.CreateFlowRequest{Port: 1, Layers: abi.FlowIPv4 | abi.FlowVLAN, Mask: masked, Priority: 65535,
			Flags: abi.FlowFlagsDontTrap}, nil},
		{"a default", abi.CreateFlowRequest{Port: 1, Type: abi.FlowAllDefault}, nil},
		{"port 0", abi.CreateFlowRequest{}, syscall.EINVAL},
		{"port 2", abi.CreateFlowRequest{Port: 2}, syscall.EINVAL},
		{"port 2^32-1", abi.CreateFlowRequest{Port: 1<<32 - 1}, syscall.EINVAL},
		{"a type that does not exist", abi.CreateFlowRequest{Port: 1, Type: 4}, syscall.EOPNOTSUPP},
		{"a layer that does not exist", abi.CreateFlowRequest{Port: 1, Layers: 32}, syscall.EOPNOTSUPP},
		{"EGRESS", abi.CreateFlowRequest{Port: 1, Flags: 4}, syscall.EOPNOTSUPP},
		{"a priority of 17 bits", abi.CreateFlowRequest{Port: 1, Priority: 65536}, syscall.EINVAL},
		{"a default with a rule", abi.CreateFlowRequest{Port: 1, Type: abi.FlowMCDefault, Mask: masked}, syscall.EINVAL},
		{"a default that lets pass", abi.CreateFlowRequest{Port: 1, Type: abi.FlowAllDefault, Flags: abi.FlowFlagsDontTrap},
			syscall.EINVAL},
		{"a sniffer", abi.CreateFlowRequest{Port: 1, Type: abi.FlowSniffer}, syscall.EPERM},
		{"a queue pair of type RC", abi.CreateFlowRequest{QP: limitQP, Port: 1}, syscall.EINVAL},
		{"no queue pair", abi.CreateFlowRequest{QP: limitCQ, Port: 1}, syscall.ENOENT},
	} {
		if v.m.QP == 0 {
			v.m.QP = pair
		}
		if _, err := c.newFlow(v.m); !errors.Is(err, v.want) {
			t.Errorf("%s: %v, want %v", v.name, err, v.want)
		}
	}
}

// TestFlowsEnd: a queue pair with flows cannot be destroyed; flows are counted, and end with their client.
func TestFlowsEnd(t *testing.T) {
	r, c, pair := startRaw(t, abi.RawAll)
	const most = 1024
	var flows []uint32
	for {
		f, err := c.newFlow(abi.CreateFlowRequest{QP: pair, Port: 1, Type: uint32(len(flows)) % 4})
		if errors.Is(err, syscall.ENOMEM) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		flows = append(flows, f)
	}
	if len(flows) != most {
		t.Errorf("%d flows, want %d", len(flows), most)
	}
	for _, v := range []struct {
		kind   abi.Type
		handle uint32
		want   syscall.Errno
	}{{abi.DestroyQP, pair, syscall.EBUSY}, {abi.DestroyFlow, flows[7], 0}, {abi.DestroyFlow, flows[7], syscall.ENOENT}} {
		h, err := call[abi.HandleMessage, abi.Header](c, v.kind, abi.HandleMessage{Handle: v.handle})
		if err != nil || syscall.Errno(h.Status) != v.want {
			t.Errorf("%v: %v, %d, want %d", v.kind, err, h.Status, v.want)
		}
	}
	c.conn.Close()
	other, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer other.conn.Close()
	if err := other.makeObjects(); err != nil {
		t.Fatal(err)
	}
	again := other.newRaw(t)
	made := 0
	for end := time.Now().Add(time.Minute); made < most && time.Now().Before(end); {
		if _, err := other.newFlow(abi.CreateFlowRequest{QP: again, Port: 1}); err == nil {
			made++
		}
	}
	if made != most {
		t.Errorf("after the end of a client with all flows another gets %d", made)
	}
}

// TestRawRefused: without frames, and where the port's configuration does not allow them, there are no queue pairs of
// type RAW_PACKET.
func TestRawRefused(t *testing.T) {
	for _, v := range []struct {
		frames bool
		want   error
	}{{false, syscall.EOPNOTSUPP}, {true, syscall.EPERM}} {
		_, c := startEquipped(t, func(s *control.Server) { s.Devices[0].Frames = v.frames })
		want := limitPair
		want.QPType = abi.QPTypeRawPacket
		if _, err := call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP, want); !errors.Is(err, v.want) {
			t.Errorf("frames %v: %v, want %v", v.frames, err, v.want)
		}
	}
}
