package main

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"urdma/urdmad/attach/snapshot"
)

func (d *daemon) logStatistics(ctx context.Context) {
	if d.Config.StatsInterval > 0 {
		d.Background.Go(func() { d.keepStatistics(ctx) })
	}
}

// keepStatistics logs statistics every stats_timer_interval until ctx ends.
func (d *daemon) keepStatistics(ctx context.Context) {
	t := time.NewTicker(d.Config.StatsInterval)
	defer t.Stop()
	last, _ := d.statisticsWithin(ctx, d.Config.StatsInterval) // on an error the first line comes one interval later
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now, err := d.statisticsWithin(ctx, d.Config.StatsInterval)
		if err != nil {
			if ctx.Err() == nil {
				d.log.Warn("no statistics", "error", err)
			}
			continue
		}
		logDifference(d.Log, last, now)
		last = now
	}
}

func (d *daemon) statisticsWithin(ctx context.Context, limit time.Duration) (*snapshot.Statistics, error) {
	ctx, cancel := context.WithTimeout(ctx, max(limit, answerTime))
	defer cancel()
	return d.snapshots.Statistics(ctx)
}

// logDifference logs a line for each port and one for the poll loop about the activity between
// last and now; nothing for a port without packets and messages. The lines are at debug level,
// except for a port that has lost packets.
func logDifference(log *slog.Logger, last, now *snapshot.Statistics) {
	if last == nil || last.Loop == nil || now.Loop == nil {
		return
	}
	seconds := now.Taken.Sub(last.Taken).Seconds()
	quiet := true
	for i := range now.Ports {
		p, q := &now.Ports[i], &last.Ports[i]
		if reflect.DeepEqual(p, q) {
			continue
		}
		quiet = false
		t, u := &now.Traffic[i], &last.Traffic[i]
		level := slog.LevelDebug
		if p.RxDropped+p.TxDropped+p.RxErrors+p.NoBuffer > q.RxDropped+q.TxDropped+q.RxErrors+q.NoBuffer || t.Lost > u.Lost {
			level = slog.LevelInfo
		}
		log.Log(context.Background(), level, "port statistics", "port", p.Name, "seconds", round(seconds),
			"rx_packets", grown(p.RxPackets, q.RxPackets), "tx_packets", grown(p.TxPackets, q.TxPackets),
			"rx_bytes", grown(p.RxBytes, q.RxBytes), "tx_bytes", grown(p.TxBytes, q.TxBytes),
			"rx_dropped", grown(p.RxDropped, q.RxDropped), "tx_dropped", grown(p.TxDropped, q.TxDropped),
			"rx_errors", grown(p.RxErrors, q.RxErrors), "no_buffer", grown(p.NoBuffer, q.NoBuffer),
			"resent", grown(t.Resent, u.Resent), "lost", grown(t.Lost, u.Lost), "timeouts", grown(t.Timeouts, u.Timeouts),
			"out_of_order", grown(t.Reordered, u.Reordered), "duplicates", grown(t.Duplicates, u.Duplicates))
	}
	work, was := now.Work, last.Work
	if quiet && work == was {
		return
	}
	l, m := now.Loop, last.Loop
	log.Debug("poll loop statistics", "seconds", round(seconds), "turns", l.Turns-m.Turns, "busy_turns",
		l.BusyTurns-m.BusyTurns,
		"asleep_seconds", round(float64(l.AsleepNs-m.AsleepNs)/1e9), "yields", l.Yields-m.Yields, "sleeps", l.Sleeps-m.Sleeps,
		"messages_out", grown(work.MessagesSent, was.MessagesSent), "messages_in", grown(work.MessagesRecv, was.MessagesRecv),
		"bytes_out", grown(work.BytesSent, was.BytesSent), "bytes_in", grown(work.BytesRecv, was.BytesRecv),
		"queue_pairs", now.QueuePairs)
}

// grown returns the growth of a counter, 0 if the sum misses objects removed while it was taken.
func grown(now, last uint64) uint64 {
	if now < last {
		return 0
	}
	return now - last
}

// round rounds to milliseconds.
func round(seconds float64) float64 { return float64(int64(seconds*1e3+0.5)) / 1e3 }
