package trace

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"urdma/event"
)

type closing struct{ bytes.Buffer }

func (c *closing) Close() error { return nil }

// TestPageEscapes: names of programs and texts of bookmarks do not end the page's script, and appear unchanged.
func TestPageEscapes(t *testing.T) {
	const hostile = "</script><script>alert(1)</script><!-- \u2028 %EVENTS% %HEAD%"
	var to closing
	h := HTML(&to, Head{Programs: map[uint32]string{7: hostile}})
	id := uint64(1<<64 - 1)
	for _, e := range []event.Event{{Kind: "CLIENT", PID: 7, What: hostile, Program: hostile},
		{Kind: "SEND", Time: time.Unix(0, 5), WRID: &id}} {
		if err := h.event(&Event{Event: e}, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	text := to.String()
	if got, want := strings.Count(text, "<script"), strings.Count(page, "<script"); got != want {
		t.Errorf("%d scripts begin, expected %d", got, want)
	}
	if got, want := strings.Count(text, "</script"), strings.Count(page, "</script"); got != want {
		t.Errorf("%d scripts end, expected %d", got, want)
	}
	_, list, _ := strings.Cut(text, `id="events">`)
	list, _, _ = strings.Cut(list, "</script>")
	var events []struct {
		Program string
		WRID    string `json:"wr_id"`
	}
	if err := json.Unmarshal([]byte(list), &events); err != nil {
		t.Fatal(err)
	}
	if len(events) != 2 || events[0].Program != hostile || events[1].WRID != "0xffffffffffffffff" {
		t.Errorf("%+v", events)
	}
}
