package report

import (
	"path/filepath"

	"urdma/bench/results"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

const (
	width  = 16 * vg.Centimeter
	height = 9 * vg.Centimeter
)

// Plots draws each sweep of the run into dir, as ID.svg.
func Plots(dir string, r *results.Run) error {
	for _, s := range r.Sweeps {
		if err := drawSweep(filepath.Join(dir, s.ID+".svg"), s); err != nil {
			return err
		}
	}
	return nil
}

func drawSweep(path string, s results.Sweep) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = s.Title, s.X, s.Unit
	logarithmic(&p.X)
	if s.ID == "latency" {
		logarithmic(&p.Y)
	} else {
		p.Y.Min = 0
	}
	p.Legend.Top, p.Legend.Left = true, true
	return draw(p, s.Curves, path)
}

func logarithmic(a *plot.Axis) { a.Scale, a.Tick.Marker = plot.LogScale{}, plot.LogTicks{} }

// draw saves a plot with the curves. A logarithmic axis has no zero, so points without a value are left out;
// without any point no plot is saved.
func draw(p *plot.Plot, curves []results.Curve, path string) error {
	p.Add(plotter.NewGrid())
	some := false
	for i, c := range curves {
		var xy plotter.XYs
		for _, pt := range c.Points {
			if pt.X > 0 && pt.Y > 0 {
				xy = append(xy, plotter.XY{X: pt.X, Y: pt.Y})
			}
		}
		if len(xy) == 0 {
			continue
		}
		line, points, err := plotter.NewLinePoints(xy)
		if err != nil {
			return err
		}
		line.Color, points.Color = plotutil.Color(i), plotutil.Color(i)
		points.Shape = plotutil.Shape(i)
		p.Add(line, points)
		p.Legend.Add(c.Name, line, points)
		some = true
	}
	if !some {
		return nil
	}
	widen(&p.X)
	widen(&p.Y)
	return p.Save(width, height, path)
}

// widen adds room around a single value. A logarithmic axis would do it by subtracting 1, which gives 0 for 1.
func widen(a *plot.Axis) {
	if _, log := a.Scale.(plot.LogScale); log && a.Min == a.Max {
		a.Min, a.Max = a.Min/2, a.Max*2
	}
}
