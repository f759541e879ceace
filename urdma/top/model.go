package top

import (
	"io"
	"time"

	// Version 1 asks the terminal for its colours in an init of its own, in
	// every command that links it, and waits five seconds for an answer.
	tea "charm.land/bubbletea/v2"

	"urdma/inspect"
)

// Feed gives snapshots of one urdmad, and connects again after an error.
type Feed struct {
	open   func() (*inspect.Source, error)
	source *inspect.Source
}

// NewFeed returns a Feed that connects by open.
func NewFeed(open func() (*inspect.Source, error)) *Feed { return &Feed{open: open} }

// Next asks for a snapshot.
func (f *Feed) Next() (*inspect.Snapshot, error) {
	if f.source == nil {
		s, err := f.open()
		if err != nil {
			return nil, err
		}
		f.source = s
	}
	s, err := f.source.Fetch()
	if err != nil {
		f.Close()
	}
	return s, err
}

// Close hangs up.
func (f *Feed) Close() {
	if f.source != nil {
		_ = f.source.Close() // nothing was written that could be lost
		f.source = nil
	}
}

// model is the terminal's: one snapshot is asked for at a time, the next an
// interval after the last came.
type model struct {
	view
	next  func() (*inspect.Snapshot, error)
	every time.Duration
}

type (
	arrived struct {
		snap *inspect.Snapshot
		err  error
	}
	due struct{}
)

// Run shows pages until the user quits.
func Run(in io.Reader, out io.Writer, feed *Feed, every time.Duration) error {
	m := model{view: view{width: 80, height: 24}, next: feed.Next, every: every}
	_, err := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out)).Run()
	return err
}

func (m model) fetch() tea.Msg {
	s, err := m.next()
	return arrived{s, err}
}

// Init is tea.Model's.
func (m model) Init() tea.Cmd { return m.fetch }

// Update is tea.Model's.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.key(msg.String())
	case arrived:
		return m.take(msg), tea.Tick(m.every, func(time.Time) tea.Msg { return due{} })
	case due:
		return m, m.fetch
	}
	return m, nil
}

// take shows a snapshot. After an error the next has nothing to be compared
// with: it may be another urdmad's.
func (m model) take(a arrived) model {
	if m.paused {
		return m
	}
	m.err = a.err
	if a.err != nil {
		m.last = nil
		return m
	}
	if m.now != nil && m.now.Daemon.Started.Equal(a.snap.Daemon.Started) {
		m.last = m.now
	} else {
		m.last = nil
	}
	m.now = a.snap
	return m
}

func (m model) key(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "ctrl+c", "esc":
		return m, tea.Quit
	case "p", "space":
		m.paused = !m.paused
	case "s":
		m.order = (m.order + 1) % orders
	}
	return m, nil
}

// View is tea.Model's.
func (m model) View() tea.View {
	v := tea.NewView(m.page())
	v.AltScreen = true
	return v
}
