package config

import (
	"fmt"
	"os"

	"urdma/topology"
)

// Topology reads the file of Fabric; nil: there is none.
func (c *Config) Topology() (*topology.Topology, error) {
	if c.Fabric == "" {
		return nil, nil
	}
	b, err := os.ReadFile(c.Fabric)
	if err != nil {
		return nil, fmt.Errorf("%s: fabric: %w", c.Source, err)
	}
	t, err := topology.Parse(c.Fabric, b)
	if err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	return t, nil
}
