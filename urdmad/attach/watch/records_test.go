package watch

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// TestRecordsAreBounded: of too many files the newest remain, of too long a recorder its end.
func TestRecordsAreBounded(t *testing.T) {
	dir := t.TempDir()
	r := NewRecords(dir, slog.New(slog.DiscardHandler))
	for i := range maxRecords + 6 {
		if err := r.write(fmt.Sprintf("%s%03d%s", recordPrefix, i, recordSuffix), []byte("text")); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != maxRecords || files[0].Name() != recordPrefix+"006"+recordSuffix {
		t.Errorf("%v, %d files, the first %v; expected %d, from 006 on", err, len(files), files[0], maxRecords)
	}
	var events []recorder.Event
	for i := range 1000 {
		e := recorder.Event{TimeNs: int64(i), Text: strings.Repeat("x", 900) + fmt.Sprint(" event ", i, "\n of it")}
		e.Kind, e.Code = abi.TraceReason, 0x0102
		events = append(events, e)
	}
	one := &record{time.Unix(0, 0), &account.Owner{PID: 5, Name: "program"}, "a test", events}
	text := string(one.text())
	if len(text) > maxRecord || len(text) < maxRecord/2 || strings.Contains(text, " event 0 ") ||
		!strings.HasSuffix(text, " event 999  of it\n") ||
		!strings.Contains(text, ": process 5 (program) of user 0: a test\n") {
		t.Errorf("%d bytes, expected at most %d and the last events:\n%s", len(text), maxRecord, text[max(0, len(text)-300):])
	}
}
