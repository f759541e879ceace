package top

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"urdma/inspect"
	"urdma/urdma/report"
)

// View is the content of a page and its layout.
type View struct {
	Last, Now     *inspect.Snapshot // equal at first: all rates are 0
	Order         Order
	Width, Height int
}

// least is the smallest usable page.
const (
	leastWidth  = 40
	leastHeight = 8
)

// Page lays out exactly Height lines of at most Width characters.
func (v View) Page() string {
	v.Width, v.Height = max(v.Width, leastWidth), max(v.Height, leastHeight)
	lines := v.body()
	for len(lines) < v.Height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:v.Height-1], v.foot())
	for i := range lines {
		lines[i] = cut(lines[i], v.Width)
	}
	return strings.Join(lines, "\n")
}

func (v View) body() []string {
	r := compare(v.Last, v.Now, v.Order)
	lines := append(v.head(&r), "")
	lines = append(append(lines, v.atMost(r.portLines(v.Width), "ports")...), "")
	if len(r.workers) > 0 {
		lines = append(append(lines, v.atMost(r.workerLines(v.Width), "workers")...), "")
	}
	room := v.Height - 1 - len(lines)
	return append(lines, r.pairLines(v.Width, room)...)
}

// atMost limits a table to a third of the page.
func (v View) atMost(lines []string, what string) []string {
	if most := max(2, v.Height/3); len(lines) > most {
		return append(lines[:most-1], fmt.Sprintf("and %d more %s", len(lines)-most+1, what))
	}
	return lines
}

func (v View) head(r *rates) []string {
	s := v.Now
	first := fmt.Sprintf("urdmad %s  up %s  %s", s.Daemon.Version, report.Span(s.Taken.Sub(s.Daemon.Started)),
		s.Taken.Local().Format("15:04:05"))
	second := fmt.Sprintf("%d clients  %d queue pairs  %d connections  %d regions", len(s.Clients), len(s.QPs),
		len(s.Connections), len(s.Regions))
	if r.loop != nil {
		second += fmt.Sprintf("  loop %.0f%% busy, %.0f%% asleep", 100*r.loop.busy, 100*r.loop.asleep)
	}
	return []string{first, second}
}

func (v View) foot() string {
	text := "sorted by " + string(v.Order) + " (--sort)"
	if v.Now.Restricted {
		text += "  (only your own objects)"
	}
	return text
}

func rate(v float64) string { return report.Bytes(uint64(v)) }

func (r *rates) portLines(width int) []string {
	cells := [][]string{{"PORT", "LINK", "RX/s", "TX/s", "RX-PKT/s", "TX-PKT/s", "RESENT/s", "DROPPED/s"}}
	for i := range r.ports {
		p := &r.ports[i]
		link := "down"
		if p.LinkUp {
			link = "up"
		}
		cells = append(cells, []string{p.Name, link, rate(p.rxBytes), rate(p.txBytes), report.Count(p.rxPackets),
			report.Count(p.txPackets), report.Count(p.resent), report.Count(p.dropped)})
	}
	return layOut(cells, 2, 0, width)
}

func (r *rates) workerLines(width int) []string {
	cells := [][]string{{"WORKER", "CORE", "CLIENTS", "QPS", "BUSY", "ASLEEP", "RX-PKT/s", "HANDED-ON/s"}}
	for i := range r.workers {
		w := &r.workers[i]
		cells = append(cells, []string{strconv.Itoa(w.Number), strconv.Itoa(w.Core), strconv.Itoa(w.Clients),
			strconv.Itoa(w.QPs),
			fmt.Sprintf("%.0f%%", 100*w.busy), fmt.Sprintf("%.0f%%", 100*w.asleep), report.Count(w.received),
			report.Count(w.handedOn)})
	}
	return layOut(cells, 1, 0, width)
}

// wide is the width from which a page has more columns.
const wide = 110

// pairLines returns at most room lines.
func (r *rates) pairLines(width, room int) []string {
	cells := [][]string{{"QPN", "PID", "COMMAND", "PEER", "OUT/s", "IN/s", "MSG/s", "RTT", "LOST/s"}}
	more := []string{"PORT", "STATE", "SEND", "RECV"}
	if width >= wide {
		cells[0] = append(cells[0], more...)
	}
	for i := range r.pairs {
		if len(cells) >= room {
			break
		}
		p := &r.pairs[i]
		row := p.cells()
		if width >= wide {
			row = append(row, p.Device, p.State, fmt.Sprintf("%d/%d", p.SendFill, p.SendDepth),
				fmt.Sprintf("%d/%d", p.RecvFill, p.RecvDepth))
		}
		cells = append(cells, row)
	}
	return layOut(cells, 4, 2, width)
}

func (p *pairRate) cells() []string {
	peer, rtt, lost := p.Peer, "-", "-"
	if p.Wire != nil {
		rtt, lost = report.Duration(p.Wire.RTTNs), report.Count(p.resent)
	}
	if peer == "" {
		peer = p.State
	}
	return []string{fmt.Sprintf("%06x", p.QPN), strconv.Itoa(p.PID), p.Command, peer, rate(p.out), rate(p.in),
		report.Count(p.messages), rtt, lost}
}

// layOut aligns cells: the first left columns to the left, the others to the right. Column elastic is shortened if
// a line is too long.
func layOut(cells [][]string, left, elastic, width int) []string {
	widths := make([]int, len(cells[0]))
	total := len(widths) - 1
	for c := range widths {
		for _, row := range cells {
			widths[c] = max(widths[c], utf8.RuneCountInString(row[c]))
		}
		total += widths[c]
	}
	if total > width {
		widths[elastic] = max(3, widths[elastic]-(total-width))
	}
	var lines []string
	for _, row := range cells {
		var b strings.Builder
		for c, cell := range row {
			cell = cut(cell, widths[c])
			pad := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell))
			if c > 0 {
				b.WriteByte(' ')
			}
			if c < left {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// cut shortens text to width characters.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width])
}
