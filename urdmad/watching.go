package main

import "urdma/urdmad/attach/watch"

// attachWatch has clients watched, and what has failed written to files if the configuration
// names a directory.
func (d *daemon) attachWatch() error {
	var records *watch.Records
	if d.Config.RecorderDir != "" {
		records = watch.NewRecords(d.Config.RecorderDir, d.Log)
	}
	d.watch = watch.Attach(d.Server, records)
	return nil
}
