package watch

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
	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/objects"
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// This file writes flight recorders to files when a queue pair has failed, when a client ends
// after a failure or with queue pairs left, and when a client sets a bookmark.

// Limits of these files.
const (
	maxRecords   = 64
	maxRecord    = 128 << 10
	recordDelay  = 500 * clock.Millisecond // so that the consequences of a failure are included
	recordPause  = 10 * clock.Second       // between two files of a client
	recordPrefix = "urdma-"
	recordSuffix = ".txt"
)

// Records is the directory of these files.
type Records struct {
	dir   string
	log   *slog.Logger
	queue chan record
}

// record is a file to be written: a client's events, unsorted, and the occasion.
type record struct {
	at     time.Time
	of     *account.Owner
	why    string
	events []recorder.Event
}

// NewRecords returns the directory for the files, and makes it if it does not exist.
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

// write writes a file, and removes the oldest files beyond the limit.
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
		return errors.Join(err, os.Remove(path)) // remove the incomplete file
	}
	r.log.Info("flight recorder written", "file", path)
	return r.prune()
}

// prune removes the oldest files. Their names sort by time.
func (r *Records) prune() error {
	all, err := filepath.Glob(filepath.Join(r.dir, recordPrefix+"*"+recordSuffix))
	slices.Sort(all)
	for _, old := range all[:max(0, len(all)-maxRecords)] {
		err = cmp.Or(err, os.Remove(old))
	}
	return err
}

// recordSoon schedules the writing of the client's recorder, unless it is scheduled already. It
// and the next two functions run on the worker's thread.
func (c *client) recordSoon(why string) {
	if c.watch.Records == nil || c.recordOf != "" {
		return
	}
	if c.record == nil {
		c.record, c.recorded = clock.NewTimer(c.recordNow), -recordPause
	}
	c.recordOf = why
	c.w.Engine.Clock.Set(c.record, max(c.w.Engine.Now()+recordDelay, c.recorded+recordPause))
}

// recordEnd writes the recorder of a client that ends, if it has failed or leaves queue pairs.
func (c *client) recordEnd() {
	if c.watch.Records == nil {
		return
	}
	pairs := 0
	for o := c.x.Objects(); o.Next(); {
		if _, ok := o.Value().Interface().(*objects.QP); ok {
			pairs++
		}
	}
	switch {
	case c.recordOf != "":
		c.w.Engine.Clock.Set(c.record, clock.Never)
	case pairs > 0:
		c.recordOf = fmt.Sprintf("the program ended with %d queue pairs left", pairs)
	case c.recorder.Failed() && c.record == nil:
		c.recordOf = "the program ended after a failure"
	default:
		return
	}
	c.recordNow()
}

// recordNow passes the recorder to the goroutine that writes it.
func (c *client) recordNow() {
	one := record{time.Now(), c.x.Owner.Identity(), c.recordOf, c.events()}
	c.recordOf, c.recorded = "", c.w.Engine.Now()
	select {
	case c.watch.Records.queue <- one:
	default:
		c.watch.s.Log.Warn("flight recorder not written: files wait for the disk", "dir", c.watch.Records.dir)
	}
}

func (one *record) name() string {
	return fmt.Sprintf("%s%s-%d%s", recordPrefix, one.at.UTC().Format("20060102T150405.000000"), one.of.PID, recordSuffix)
}

// text returns the content of the file; if it is too long, its last part.
func (one *record) text() []byte {
	recorder.Sort(one.events)
	head := fmt.Sprintf("%s: process %d (%s) of user %d: %s\n%s\n",
		one.at.Format(time.RFC3339), one.of.PID, one.of.Name, one.of.UID, one.why, event.Head)
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
			continue // events without a name are not written
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
