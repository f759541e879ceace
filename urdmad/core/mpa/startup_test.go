package mpa

import (
	"reflect"
	"testing"

	"urdma/wire"
)

// TestReply lists the reply to each kind of request (RFC 5044 section 7.1, RFC 6581 section 9).
func TestReply(t *testing.T) {
	type m = wire.MPA
	ours := Offer{IRD: 3, ORD: 5, PrivateData: []byte("yes")}
	yes := ours.PrivateData
	for name, c := range map[string]struct {
		offer   Offer
		request m
		reply   m
		terms   Terms
	}{
		"revision 1": {ours, m{Revision: 1}, m{Reply: true, Revision: 1, PrivateData: yes}, Terms{}},
		"revision 1, CRC": {ours, m{Revision: 1, CRC: true}, m{Reply: true, Revision: 1, CRC: true, PrivateData: yes},
			Terms{CRC: true}},
		"our CRC": {Offer{CRC: true}, m{Revision: 2, Enhanced: true}, m{Reply: true, Revision: 2, Enhanced: true, CRC: true},
			Terms{CRC: true}},
		"revision 2, not enhanced": {ours, m{Revision: 2}, m{Reply: true, Revision: 2, PrivateData: yes}, Terms{}},
		"depths": {ours, m{Revision: 2, Enhanced: true, IRD: 9, ORD: 8},
			m{Reply: true, Revision: 2, Enhanced: true, IRD: 3, ORD: 5, PrivateData: yes}, Terms{}},
		"long": {ours, m{Revision: 1, Long: true}, m{Reply: true, Revision: 1, Long: true, PrivateData: yes},
			Terms{Long: true}},
		"any ready-to-receive": {Offer{}, m{Revision: 2, Enhanced: true, PeerToPeer: true, RTRSend: true, RTRWrite: true,
			RTRRead: true},
			m{Reply: true, Revision: 2, Enhanced: true, PeerToPeer: true, RTRWrite: true}, Terms{}},
		"a Read": {Offer{}, m{Revision: 2, Enhanced: true, PeerToPeer: true, RTRSend: true, RTRRead: true},
			m{Reply: true, Revision: 2, Enhanced: true, IRD: 1, PeerToPeer: true, RTRRead: true}, Terms{reads: true}},
		"no FULPDU": {Offer{}, m{Revision: 2, Enhanced: true, PeerToPeer: true, RTRSend: true},
			m{Reply: true, Revision: 2, Enhanced: true, PeerToPeer: true, RTRSend: true}, Terms{emptyRTR: true}},
		"kinds without peer-to-peer": {Offer{}, m{Revision: 2, Enhanced: true, RTRSend: true, RTRWrite: true, RTRRead: true},
			m{Reply: true, Revision: 2, Enhanced: true}, Terms{}},
	} {
		if err := acceptable(&c.request); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if reply, terms := c.offer.reply(&c.request); !reflect.DeepEqual(reply, c.reply) || terms != c.terms {
			t.Errorf("%s: %+v, %+v; expected %+v, %+v", name, reply, terms, c.reply, c.terms)
		}
	}
	for name, r := range map[string]m{"markers": {Revision: 1, Markers: true}, "revision 0": {},
		"revision 3": {Revision: 3}} {
		if acceptable(&r) == nil {
			t.Errorf("%s: accepted", name)
		}
		no := refuse(&r, []byte("no"))
		if !no.Reject || !no.Reply || no.Markers || no.Revision < 1 || no.Revision > 2 || string(no.PrivateData) != "no" {
			t.Errorf("%s: %+v", name, no)
		}
	}
}

// TestAgree lists the terms for replies to our request: from a urdmad, from siw, which copies the request's
// flags, and from others.
func TestAgree(t *testing.T) {
	mine := Offer{IRD: 3, ORD: 5, Extension: wire.TRPExtension{MaxSegment: 65532, RecvWindow: 1}}
	request := mine.request()
	if !request.Extension || !request.Enhanced || request.Revision != 2 {
		t.Errorf("%+v", request)
	}
	reply, terms := (&Offer{IRD: 5, ORD: 3, PrivateData: []byte("yes"), Extension: mine.Extension}).reply(&request)
	b, err := reply.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	var got wire.MPA
	if _, err := got.Parse(b, true); err != nil {
		t.Fatal(err)
	}
	agreed := mine.agree(&got)
	if !agreed.Extended || agreed.Extension.MaxSegment != 65532 || string(got.PrivateData) != "yes" ||
		agreed.CRC != terms.CRC {
		t.Errorf("%+v, private data %q", agreed, got.PrivateData)
	}
	for name, c := range map[string]struct {
		reply wire.MPA
		want  Terms
	}{
		"siw": {wire.MPA{Reply: true, Extension: true, Long: true, Revision: 2, Enhanced: true,
			PrivateData: []byte("yes")}, Terms{Long: true, copied: true}},
		"no flags":    {wire.MPA{Reply: true, Revision: 2, PrivateData: got.PrivateData}, Terms{}},
		"CRC":         {wire.MPA{Reply: true, Revision: 1, CRC: true}, Terms{CRC: true}},
		"block alone": {wire.MPA{Reply: true, Revision: 2, PrivateData: appendExtension(nil, &mine.Extension)}, Terms{}},
		"half": {wire.MPA{Reply: true, Revision: 2, Extension: true,
			PrivateData: appendExtension(nil, &mine.Extension)[:extensionLen-1]}, Terms{copied: true}},
	} {
		private := string(c.reply.PrivateData)
		if got := mine.agree(&c.reply); got != c.want || string(c.reply.PrivateData) != private {
			t.Errorf("%s: %+v, private data %q; expected %+v", name, got, c.reply.PrivateData, c.want)
		}
	}
}

// FuzzExtension: no private data is parsed beyond its end.
func FuzzExtension(f *testing.F) {
	f.Add(appendExtension([]byte("hello"), &wire.TRPExtension{MaxSegment: 65532, RecvWindow: 1}))
	f.Add([]byte(extensionMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		private, _, ok := cutExtension(b)
		want := len(b)
		if ok {
			want -= extensionLen
		}
		if len(private) != want {
			t.Errorf("%d of %d bytes are private data (%v)", len(private), len(b), ok)
		}
	})
}
