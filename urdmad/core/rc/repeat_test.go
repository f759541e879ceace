package rc

import (
	"testing"

	"urdma/wire/roce"
)

// answered makes a responder whose peer has requested a Read of 3,000 bytes at 1,000, and has the answer: PSNs 7 to
// 9.
func answered(t *testing.T) (r *Responder, read Arrival) {
	t.Helper()
	r, read = &Responder{}, Arrival{Opcode: roce.ReadRequest, PSN: 7, VA: 1000, Length: 3000, RKey: 5}
	r.Init(7, 1024, 2, &Stats{})
	if do, _ := r.Judge(&read); do != Deliver {
		t.Fatalf("judged %d", do)
	}
	r.Delivered(&read)
	if n := drain(r); n != 3000 || r.Owed() != 0 {
		t.Fatalf("answered with %d bytes, %d answers owed", n, r.Owed())
	}
	return r, read
}

// drain sends the pending answers, and returns their number of bytes.
func drain(r *Responder) (n uint32) {
	for p, ok := r.NextAnswer(); ok; p, ok = r.NextAnswer() {
		n += p.Length
		r.Answered(&p)
	}
	return n
}

// TestRepeatIsAsked: a repeated request changes nothing before it is known that it may be answered again.
func TestRepeatIsAsked(t *testing.T) {
	r, read := answered(t)
	do, slot := r.Judge(&read)
	if p, ok := r.NextAnswer(); do != Answer || ok || r.Owed() != 0 {
		t.Fatalf("judged %d; an answer is owed before anybody agreed: %+v", do, p)
	}
	r.Repeated(&read, slot)
	if n := drain(r); n != 3000 {
		t.Errorf("%d bytes", n)
	}
}

// TestRepeatOfAPart: a repeated request for a part is answered with that part.
func TestRepeatOfAPart(t *testing.T) {
	for _, c := range []struct{ skip, length uint32 }{{0, 0}, {0, 1}, {0, 1000}, {0, 1500}, {0, 2048}, {1, 1976},
		{1, 1024}, {2, 952}, {2, 5}} {
		r, read := answered(t)
		read.PSN, read.VA, read.Length = read.PSN.Add(c.skip), read.VA+uint64(c.skip)*1024, c.length
		do, slot := r.Judge(&read)
		if do != Answer {
			t.Errorf("%+v: judged %d", c, do)
			continue
		}
		r.Repeated(&read, slot)
		if n := drain(r); n != c.length {
			t.Errorf("%+v: answered with %d bytes", c, n)
		}
	}
}

// TestRepeatRefused: the NAK of a repeated request has that request's PSN, and later requests are not
// answered.
func TestRepeatRefused(t *testing.T) {
	r, read := answered(t)
	next := read
	next.PSN = 10
	r.Judge(&next)
	r.Delivered(&next)
	if do, _ := r.Judge(&read); do != Answer {
		t.Fatalf("judged %d", do)
	}
	r.Refuse(read.PSN, roce.NAKAccess)
	if p, ok := r.NextAnswer(); ok {
		t.Errorf("an answer behind it: %+v", p)
	}
	psn, aeth, ok := r.Reply(^uint64(0))
	if !ok || psn != 7 || aeth.Syndrome != roce.NAKAccess || !r.Replied(psn) {
		t.Errorf("NAK %#x of %d, %t", aeth.Syndrome, psn, ok)
	}
}

// TestRefusedAnswersChangeNothing: an answer that can't come from the peer acknowledges nothing.
func TestRefusedAnswersChangeNothing(t *testing.T) {
	for name, hear := range map[string]func(r *Requester) Heard{
		"NAK that nobody has":      func(r *Requester) Heard { return r.Acknowledgement(1, 2, roce.NAKOperational+1) },
		"response of a Write":      func(r *Requester) Heard { return r.Response(1, 2, 5) },
		"response of wrong length": func(r *Requester) Heard { return r.Response(1, 5, 7) },
	} {
		var r Requester
		r.Init(Config{PSN: 1, MTU: 1024, Reads: 4, Retries: NoLimit, RNRRetries: NoLimit}, &Stats{})
		r.Begin(1, Data, 3*1024)
		r.Begin(2, Read, 3*1024)
		leave(&r, 0)
		before := r.acked
		if h := hear(&r); !h.Refused || r.acked != before || r.next != r.end {
			t.Errorf("%s: %+v; %d acknowledged, %d to be sent again", name, h, r.acked-before, r.end-r.next)
		}
	}
}

// TestTooManyAnswers: the answers owed to a peer never exceed half of the PSN space. Otherwise the NAK of
// its first Read, if memory was deregistered, would have an ambiguous PSN.
func TestTooManyAnswers(t *testing.T) {
	r, stats := &Responder{}, &Stats{}
	r.Init(7, 256, 4, stats)
	read := Arrival{Opcode: roce.ReadRequest, PSN: 7, Length: maxMessage}
	if do, _ := r.Judge(&read); do != Deliver {
		t.Fatalf("judged %d", do)
	}
	r.Delivered(&read)
	for _, next := range []Arrival{{Opcode: roce.ReadRequest, Length: maxMessage}, {Opcode: roce.ReadRequest},
		{Opcode: roce.FetchAdd}, {Opcode: roce.SendOnly}} {
		next.PSN = roce.PSN(7).Add(maxMessage / 256)
		if do, _ := r.Judge(&next); do == Deliver {
			r.Delivered(&next)
			t.Errorf("%v of %d bytes is taken behind a Read of %d", next.Opcode, next.Length, read.Length)
		}
	}
	p, ok := r.NextAnswer()
	if r.Refuse(p.PSN, roce.NAKAccess); !ok {
		t.Fatal("no answer is owed")
	}
	if psn, aeth, ok := r.Reply(^uint64(0)); !ok || psn != 7 || aeth.Syndrome != roce.NAKAccess {
		t.Errorf("NAK %#x of %d, %t", aeth.Syndrome, psn, ok)
	}
}
