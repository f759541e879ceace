package control

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"urdma/event"
	"urdma/reason"
	"urdma/reason/words"
	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// This file writes flight recorders to files: when a queue pair has failed, when a client
// ends that has failed or leaves queue pairs behind, and when it sets a bookmark.

// Bounds of what is written.
const (
	maxRecords   = 64
	maxRecord    = 128 << 10
	recordDelay  = 500 * clock.Millisecond // what follows from a failure is in its file
	recordPause  = 10 * clock.Second       // between two of a client
	recordPrefix = "urdma-"
	recordSuffix = ".txt"
)

// Records is the directory of these files.
type Records struct {
	dir   string
	log   *slog.Logger
	queue chan record
}

// record is a file to be written: a client's events, in no order yet, and why.
type record struct {
	at     time.Time
	of     *account.Owner
	why    string
	events []recorder.Event
}

// NewRecords has files written to a directory, which is made if it does not exist.
func NewRecords(dir string, log *slog.Logger) *Records {
	r := &Records{dir: dir, log: log, queue: make(chan record, 16)}
	go func() {
		for one := range r.queue {
			if err := r.write(one.name(), one.text()); err != nil {
				log.Warn("flight recorder not written", "error", err)
			}
		}
	}()
	return r
}

// write writes a file, and removes the oldest of too many.
func (r *Records) write(name string, text []byte) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("recorder_dir: %w", err)
	}
	path := filepath.Join(r.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = cmp.Or(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // half of it is of no use
	}
	r.log.Info("flight recorder written", "file", path)
	return r.prune()
}

// prune removes the oldest files: their names sort by time.
func (r *Records) prune() error {
	all, err := filepath.Glob(filepath.Join(r.dir, recordPrefix+"*"+recordSuffix))
	slices.Sort(all)
	for _, old := range all[:max(0, len(all)-maxRecords)] {
		err = cmp.Or(err, os.Remove(old))
	}
	return err
}

// recordFailures has the client's recorder written when a queue pair fails; on the engine's
// thread, as the others.
func (x *Session) recordFailures() {
	if x.s.Records == nil {
		return
	}
	x.client.Recorder.OnReason = func(e *abi.TraceEvent) {
		if n := reason.Number(e.Code); e.QPN != 0 && n.Errno() == 0 {
			x.recordSoon(fmt.Sprintf("queue pair %06x has failed: %v, %s", e.QPN, n, words.What(n)))
		}
	}
}

// recordSoon has the client's recorder written, unless that is to happen anyway.
func (x *Session) recordSoon(why string) {
	if x.s.Records == nil || x.ended || x.recordOf != "" {
		return
	}
	if x.record == nil {
		x.record, x.recorded = clock.NewTimer(x.recordNow), -recordPause
	}
	x.recordOf = why
	now := x.w.Engine.Now()
	x.w.Engine.Clock.Set(x.record, max(now+recordDelay, x.recorded+recordPause))
}

// recordEnd writes the recorder of a client that ends, if it has failed or ends with queue
// pairs left.
func (x *Session) recordEnd() {
	if x.s.Records == nil || x.client == nil {
		return
	}
	pairs := 0
	for _, o := range x.objects {
		if _, ok := o.(*QP); ok {
			pairs++
		}
	}
	switch {
	case x.recordOf != "":
		x.w.Engine.Clock.Set(x.record, clock.Never)
	case pairs > 0:
		x.recordOf = fmt.Sprintf("the program ended with %d queue pairs left", pairs)
	case x.client.Recorder.Failed() && x.record == nil:
		x.recordOf = "the program ended after a failure"
	default:
		return
	}
	x.recordNow()
}

// recordNow hands the recorder to who writes it.
func (x *Session) recordNow() {
	one := record{time.Now(), x.Owner.Identity(), x.recordOf, x.events()}
	x.recordOf, x.recorded = "", x.w.Engine.Now()
	select {
	case x.s.Records.queue <- one:
	default:
		x.s.Log.Warn("flight recorder not written: files wait for the disk", "dir", x.s.Records.dir)
	}
}

func (one *record) name() string {
	return fmt.Sprintf("%s%s-%d%s", recordPrefix, one.at.UTC().Format("20060102T150405.000000"), one.of.PID, recordSuffix)
}

// text is what the file says; of too much the last.
func (one *record) text() []byte {
	recorder.Sort(one.events)
	head := fmt.Sprintf("%s: process %d (%s) of user %d: %s\n%s\n", one.at.Format(time.RFC3339), one.of.PID, one.of.Name, one.of.UID, one.why, event.Head)
	var lines []string
	room := maxRecord - len(head)
	for _, e := range slices.Backward(one.events) {
		e.PID = uint32(one.of.PID)
		body, note := abi.Bytes(&e.TraceEvent), []byte(nil)
		if e.Kind == abi.TraceReason {
			body = append(slices.Clone(body), e.Text...)
		} else {
			note = []byte(e.Text)
		}
		v, err := event.Decode(time.Unix(0, e.TimeNs), body, note)
		if err != nil {
			continue // there is none of a kind that has no name
		}
		line := strings.ReplaceAll(v.Timed(), "\n", " ") + "\n"
		if room -= len(line); room < 0 {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	var b bytes.Buffer
	b.WriteString(head)
	b.WriteString(strings.Join(lines, ""))
	return b.Bytes()
}
