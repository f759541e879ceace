package config

import (
	"fmt"
	"os"

	"urdma/topology"
)

// Topology reads the Fabric file. It returns nil if Fabric is "".
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
