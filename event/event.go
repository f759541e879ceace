// Package event turns the numbers of an abi.TraceEvent into words. It has the only table of names and texts for
// traces, flight recorder files and explanations. It must not know where events come from nor where they go.
package event

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"urdma/reason"
	"urdma/reason/words"
	"urdma/verbs/abi"
)

// Event is one thing that happened.
type Event struct {
	Time     time.Time     `json:"time"`
	Kind     string        `json:"kind"` // one of Kinds
	PID      uint32        `json:"pid,omitempty"`
	QPN      uint32        `json:"qpn,omitempty"`
	What     string        `json:"what"`             // call, operation, state, event, packet or text
	Status   string        `json:"status,omitempty"` // errno or completion status of an error
	Bytes    uint32        `json:"bytes,omitempty"`
	WRID     *uint64       `json:"wr_id,omitempty"`       // nil: the event has none
	Address  string        `json:"address,omitempty"`     // target address of an RDMA Write
	Program  string        `json:"program,omitempty"`     // of kind CLIENT: the program's name
	Reason   reason.Number `json:"reason,omitempty"`      // of kind WHY
	Text     string        `json:"text,omitempty"`        // of kind WHY: the objects concerned
	Duration time.Duration `json:"duration_ns,omitempty"` // of a call
}

// Kinds are the kinds of events; PACKET appears in captures.
var Kinds = []string{"API", "SEND", "RCV", "PLACE", "COMP", "STATE", "ASYNC", "CM", "RTRY", "RNR", "CLIENT", "LINK",
	"WHY", "BOOKMARK", "PACKET"}

var kindNames = map[uint32]string{abi.TraceCall: "API", abi.TraceSend: "SEND", abi.TraceReceive: "RCV",
	abi.TraceCompletion: "COMP",
	abi.TraceState:      "STATE", abi.TraceAsync: "ASYNC", abi.TraceCM: "CM", abi.TraceResent: "RTRY",
	abi.TraceNotReady: "RNR",
	abi.TraceMark:     "BOOKMARK",
	abi.TraceClient:   "CLIENT", abi.TraceLink: "LINK", abi.TraceReason: "WHY", abi.TracePlaced: "PLACE"}

// Decode converts the bytes of an abi.TraceEvent, which the text of a reason may follow. note is the text of a
// bookmark, or a name.
func Decode(at time.Time, body, note []byte) (Event, error) {
	size := min(abi.Size[abi.TraceEvent](), len(body))
	e, ok := abi.Decode[abi.TraceEvent](body[:size])
	if !ok || kindNames[e.Kind] == "" {
		return Event{}, fmt.Errorf("an event of kind %d with %d bytes, expected %d: urdma and urdmad are of different "+
			"versions",
			e.Kind, len(body), abi.Size[abi.TraceEvent]())
	}
	v := Event{Time: at, Kind: kindNames[e.Kind], PID: e.PID, QPN: e.QPN, Bytes: e.Length,
		Duration: time.Duration(e.DurationNs)}
	switch e.Kind {
	case abi.TraceCall:
		v.What = abi.Type(e.Code).Call()
		if e.Status != 0 {
			v.Status = errnoName(syscall.Errno(e.Status))
		}
	case abi.TraceSend:
		v.What, v.WRID = fmt.Sprint("opcode ", e.Code), &e.WRID
		if op := abi.OperationOf(e.Code); op != nil {
			v.What = op.Name
		}
	case abi.TraceReceive:
		v.What, v.WRID = "a message takes a receive", &e.WRID
	case abi.TraceCompletion:
		v.What, v.WRID = abi.CompletionText(e.Code), &e.WRID
	case abi.TracePlaced:
		v.What, v.WRID = abi.CompletionText(e.Code)+" placed", &e.WRID
		switch e.Code {
		case abi.WCRecv:
			v.What = "message placed"
		case abi.WCRDMAWrite:
			v.Address, v.WRID = fmt.Sprintf("%#x", e.WRID), nil
		}
	case abi.TraceState:
		v.What = abi.QPStateText(e.Code)
	case abi.TraceAsync:
		v.What = abi.AsyncText(e.Code)
	case abi.TraceCM:
		v.What = abi.CMText(e.Code)
		if e.Status != 0 {
			v.Status = fmt.Sprint("status ", int32(e.Status))
		}
	case abi.TraceResent:
		v.What = fmt.Sprint("segment ", e.Code, " goes again")
	case abi.TraceNotReady:
		v.What = "a message waits for a receive"
	case abi.TraceClient:
		v.Program = string(note)
		v.What = v.Program + came(e.Code, " came", " has gone")
	case abi.TraceLink:
		v.What = string(note) + came(e.Code, " is up", " is down")
	case abi.TraceReason:
		v.Reason, v.Text = reason.Number(e.Code), string(body[size:])
		v.What = v.Reason.String() + " " + words.What(v.Reason)
		if e.Status != 0 {
			v.WRID = &e.WRID
		}
	case abi.TraceMark:
		v.What = string(note)
	}
	if e.Kind == abi.TraceSend || e.Kind == abi.TraceCompletion || e.Kind == abi.TraceReason {
		if e.Status != abi.StatusSuccess {
			v.Status = abi.StatusText(e.Status)
		}
	}
	return v, nil
}

func came(code uint32, yes, no string) string {
	if code != 0 {
		return yes
	}
	return no
}

// errnoName is the name and meaning of an errno: "EINVAL (invalid argument)".
func errnoName(e syscall.Errno) string {
	if name := unix.ErrnoName(e); name != "" {
		return name + " (" + e.Error() + ")"
	}
	return e.Error()
}

// Head is the heading for lines of String.
var Head = fmt.Sprintf("%-18s %7s %6s %-8s %s", "TIME", "PID", "QPN", "KIND", "EVENT")

// Timed formats the event as a line of text, with its time.
func (e *Event) Timed() string { return e.Time.Format("15:04:05.000000000 ") + e.String() }

// String formats the event as a line of text, without its time.
func (e *Event) String() string {
	return fmt.Sprintf("%7s %6s %-8s %s", number(e.PID, "%d"), number(e.QPN, "%06x"), e.Kind, e.Line())
}

// Line formats the event without its time, kind and owner.
func (e *Event) Line() string {
	var b strings.Builder
	b.WriteString(e.What)
	if e.Status != "" {
		b.WriteString(": " + e.Status)
	}
	if e.Bytes > 0 {
		fmt.Fprintf(&b, ", %d bytes", e.Bytes)
	}
	if e.Address != "" {
		b.WriteString(" at " + e.Address)
	}
	if e.WRID != nil {
		fmt.Fprintf(&b, ", wr_id %#x", *e.WRID)
	}
	if e.Duration > 0 {
		fmt.Fprintf(&b, ", %v", e.Duration.Round(100*time.Nanosecond))
	}
	if e.Text != "" {
		b.WriteString("; " + e.Text)
	}
	return b.String()
}

func number(n uint32, format string) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf(format, n)
}
