package capture

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"urdma/inspect"
	"urdma/verbs/abi"
)

// Section describes, in the file, where the frames come from.
type Section struct {
	Application string // the program that writes the file, with its version
	Filter      string // for people
	SnapBytes   uint32 // 0: frames are whole
	Ports       []inspect.Port
}

// interfaces are urdmad's ports, followed by one interface for the connections between programs of its host per
// port. The device number of a record is an index into them. Readers recognize our datagrams by the interface's
// description (wireshark/trp.lua).
func (s *Section) interfaces() []pcapgo.NgInterface {
	var list []pcapgo.NgInterface
	add := func(name, description string) {
		list = append(list, pcapgo.NgInterface{Name: name, Description: description, Filter: s.Filter,
			LinkType: layers.LinkTypeEthernet, SnapLength: s.SnapBytes})
	}
	for _, p := range s.Ports {
		add(p.Name, fmt.Sprintf("urdma: %s, %s, MTU %d, %s", p.Driver, p.Address, p.MTU, p.MAC))
	}
	for _, p := range s.Ports {
		add(p.Name+" (host)", fmt.Sprintf("urdma: between programs of this host, as a wire with MTU %d would carry it",
			p.MTU))
	}
	return list
}

// file is one pcapng file. It is complete after each flush.
type file struct {
	out    io.WriteCloser
	buffer *bufio.Writer
	writer *pcapgo.NgWriter // has a small buffer of its own
	seen   []uint64         // number of frames written, by interface
	lost   []uint64
}

const bufferBytes = 1 << 18

// Open begins a pcapng file at path; "-" is standard output. Events become comments of the packet after them.
func Open(path string, s Section) (Sink, error) {
	if path == "-" {
		return newFile(stdout{}, &s)
	}
	out, err := Create(path)
	if err != nil {
		return nil, err
	}
	f, err := newFile(out, &s)
	if err != nil {
		out.Close()
		return nil, err
	}
	return f, nil
}

// Create makes a file that only its owner can read, even if it existed with other permissions: packets contain
// other people's data.
func Create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// stdout is standard output, which stays open.
type stdout struct{}

func (stdout) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdout) Close() error                { return nil }

// newFile begins a file on out; Close closes out, too.
func newFile(out io.WriteCloser, s *Section) (*file, error) {
	list := s.interfaces()
	f := &file{out: out, buffer: bufio.NewWriterSize(out, bufferBytes), seen: make([]uint64, len(list)),
		lost: make([]uint64, len(list))}
	options := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: s.Application, OS: "Linux"}}
	if len(list) == 0 {
		return nil, fmt.Errorf("urdmad has no ports")
	}
	var err error
	if f.writer, err = pcapgo.NewNgWriterInterface(f.buffer, list[0], options); err != nil {
		return nil, err
	}
	for _, i := range list[1:] {
		if _, err := f.writer.AddInterface(i); err != nil {
			return nil, err
		}
	}
	return f, f.Flush()
}

// Flush makes all that was written visible to readers of the file.
func (f *file) Flush() error {
	if err := f.writer.Flush(); err != nil {
		return err
	}
	return f.buffer.Flush()
}

// Directions of a frame in its pcapng flags (epb_flags).
var directions = map[uint16]pcapgo.NgEpbFlags{abi.CaptureIn: {Direction: pcapgo.NgEpbFlagDirectionInbound},
	abi.CaptureOut: {Direction: pcapgo.NgEpbFlagDirectionOutbound}}

// Write adds a frame; lost is the number of frames lost just before it.
func (f *file) Write(r *abi.CaptureRecord, frame, note []byte, lost uint64) error {
	if int64(r.Device) >= int64(len(f.seen)) {
		return fmt.Errorf("urdmad gave a frame of device %d, expected one of %d", r.Device, len(f.seen))
	}
	f.seen[r.Device]++
	f.lost[r.Device] += lost
	var options pcapgo.NgPacketOptions
	if flags, ok := directions[r.Direction]; ok {
		options.Flags = &flags
	}
	if len(note) > 0 {
		options.Comments = []string{"urdmad: " + string(note)}
	}
	if lost > 0 {
		options.DropCount = &lost
	}
	return f.writer.WritePacketWithOptions(gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(r.TimeNs)),
		CaptureLength: len(frame),
		Length:        int(r.FrameBytes), InterfaceIndex: int(r.Device)}, frame, options)
}

// Close writes the counts and ends the file. late is the number of frames lost after the last one written.
func (f *file) Close(late uint64) error {
	f.lost[0] += late
	now := time.Now()
	var err error
	for i := range f.seen {
		if f.seen[i]+f.lost[i] > 0 && err == nil {
			err = f.writer.WriteInterfaceStats(i, pcapgo.NgInterfaceStatistics{LastUpdate: now,
				PacketsReceived: f.seen[i] + f.lost[i], PacketsDropped: f.lost[i]})
		}
	}
	if err == nil {
		err = f.Flush()
	}
	if closeErr := f.out.Close(); err == nil {
		err = closeErr
	}
	return err
}
