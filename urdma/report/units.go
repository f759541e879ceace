package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bytes formats a number of bytes in binary units, with three digits.
func Bytes(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatUint(n, 10)
	}
	v, u := float64(n)/1024, 0
	for ; v >= 1023.5 && u < len(units)-1; u++ {
		v /= 1024
	}
	return figures(v) + units[u:u+1] + "iB"
}

// Count formats a number in decimal units (k, M, G …), with three digits.
func Count(v float64) string {
	const units = "kMGTPE"
	if v < 0 {
		return "0"
	}
	if v < 999.5 {
		return figures(v)
	}
	u := -1
	for ; v >= 999.5 && u < len(units)-1; u++ {
		v /= 1000
	}
	return figures(v) + units[u:u+1]
}

// figures formats three digits, without a fraction of zeros.
func figures(v float64) string {
	digits := 0
	switch {
	case v < 9.995:
		digits = 2
	case v < 99.95:
		digits = 1
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.ContainsRune(s, '.') {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Duration formats nanoseconds in a suitable unit; 0 is "-".
func Duration(ns int64) string {
	switch {
	case ns <= 0:
		return "-"
	case ns < 1e3:
		return fmt.Sprintf("%dns", ns)
	case ns < 1e6:
		return figures(float64(ns)/1e3) + "µs"
	case ns < 1e9:
		return figures(float64(ns)/1e6) + "ms"
	}
	return figures(float64(ns)/1e9) + "s"
}

// Span formats a time span in its two largest units.
func Span(d time.Duration) string {
	d = d.Round(time.Second)
	day := 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// Percent formats part/whole in percent.
func Percent(part, whole float64) string {
	if whole <= 0 {
		return "-"
	}
	if p := 100 * part / whole; p == 0 || p >= 0.005 {
		return figures(p) + "%"
	}
	return "<0.01%"
}

// instant formats a time in the local time zone.
func instant(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yes(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}
