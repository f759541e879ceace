package main

import "urdma/urdmad/attach/watch"

// attachWatch attaches the observation of clients, and writes failures to files if the
// configuration names a directory.
func (d *daemon) attachWatch() error {
	var records *watch.Records
	if d.Config.RecorderDir != "" {
		records = watch.NewRecords(d.Config.RecorderDir, d.Log)
	}
	d.watch = watch.Attach(d.Server, records)
	return nil
}
