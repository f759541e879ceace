package netif

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"testing"

	"urdma/test/linked"
	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// Messages that are longer than the part of each frame that is copied.
const (
	// A query of MLDv2 from fe80::2 for ff15::1234, with four sources (RFC 3810
	// section 5.1).
	longMLD = "3333000012340200000000bb86dd6000000000640001fe800000000000000000000000000002ff1500000000000000000000000012343a000502000001008200617b03e80000" +
		"ff150000000000000000000000001234027d0004fd000009000000000000000000000010fd000009000000000000000000000011fd000009000000000000000000000012fd00" +
		"0009000000000000000000000013"
	// A query of IGMPv3 from 10.0.0.99 for 239.1.2.3, with 25 sources (RFC 3376 section
	// 4.1).
	longIGMP = "01005e0102030200000000bb080046c00088000040000102e8480a000063ef01020394040000110afe9def010203027d00190a0000100a0000110a0000120a0000130a000014" +
		"0a0000150a0000160a0000170a0000180a0000190a00001a0a00001b0a00001c0a00001d0a00001e0a00001f0a0000200a0000210a0000220a0000230a0000240a0000250a00" +
		"00260a0000270a000028"
	// A solicitation from fd00:9::2 for fd00:9::1 with an unknown option of 96 bytes, followed by the source's
	// Ethernet address (RFC 4861 section 4.3).
	longSolicit = "3333ff0000010200000000bb86dd6000000000803afffd000009000000000000000000000002ff0200000000000000000001ff0000018700b45f00000000fd00000900000000" +
		"0000000000000001c80c000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
		"0000000000000000000000000000000000000000000000000000000000000000000001010200000000bb"
)

// TestLongMessages: queries and solicitations of any length are answered, also if another process could change the
// frame.
func TestLongMessages(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, c := range []struct {
			name, frame string
			answer      uint8 // ICMPv6 or IGMP type
			rig         func(testing.TB) *rig
			group       string
		}{
			{"MLD", longMLD, wire.ICMPv6MLDReport, newRig6, "ff15::1234"},
			{"IGMP", longIGMP, uint8(wire.IGMPReport), func(t testing.TB) *rig { return newRig(t, linked.Options{}) },
				"239.1.2.3"},
			{"solicitation", longSolicit, wire.ICMPv6Advertise, newRig6, ""},
		} {
			t.Run(fmt.Sprintf("%s/shared %v", c.name, shared), func(t *testing.T) {
				r := c.rig(t)
				r.n.info.SharedRx = shared
				if c.group != "" {
					r.n.Join(netip.MustParseAddr(c.group))
				}
				r.pass()
				drain(r.far)
				r.clock.Now += clock.Second
				frame, err := hex.DecodeString(c.frame)
				if err != nil {
					t.Fatal(err)
				}
				r.raw(frame)
				r.pass()
				drain(r.n)
				r.pass()
				waiting, _ := r.far.Poll()
				if waiting != 1 {
					t.Fatalf("%d answers; dropped %v", waiting, r.n.Stats.Dropped)
				}
				b := r.far.rx.p[0].Data
				var f wire.Frame
				if err := f.Parse(b, len(b)); err != nil || b[f.PayloadOff] != c.answer {
					t.Errorf("answer % x: %v", b, err)
				}
				drain(r.far)
			})
		}
	}
}
