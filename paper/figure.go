// This file draws figures: charts of lines with bands and of points. The colours are those of Okabe and
// Ito, which the colour-blind can tell apart; lines differ in their dashes as well.
package main

import (
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/quantmf/quantmf/paper/internal/report"
)

var (
	black      = color.RGBA{0, 0, 0, 255}
	orange     = color.RGBA{0xE6, 0x9F, 0x00, 255}
	sky        = color.RGBA{0x56, 0xB4, 0xE9, 255}
	green      = color.RGBA{0x00, 0x9E, 0x73, 255}
	blue       = color.RGBA{0x00, 0x72, 0xB2, 255}
	vermillion = color.RGBA{0xD5, 0x5E, 0x00, 255}
	purple     = color.RGBA{0xCC, 0x79, 0xA7, 255}
)

// dashes of lines: whole, long, short, dotted.
var dashes = [][]vg.Length{nil, {vg.Points(7), vg.Points(3)}, {vg.Points(3), vg.Points(2)},
	{vg.Points(1), vg.Points(2)}}

// line is a curve of a chart. Low and high, where given, are the edges of its band.
type line struct {
	name      string
	x, y      []float64
	low, high []float64
	color     color.RGBA
	dash      int
	points    bool // marks at the values
	noLine    bool // marks alone
}

// epochAxis is the label of a logarithmic axis of epochs.
const epochAxis = "epochs (0 is drawn at 0.7)"

// lines returns the band as a line over epochs and as one over seconds.
func (b band) overEpochs(c line) line {
	c.name = b.Name
	for _, e := range b.Epoch {
		c.x = append(c.x, max(float64(e), 0.7))
	}
	c.y, c.low, c.high = b.Median, b.Low, b.High
	return c
}

func (b band) overSeconds(c line) line {
	c.name = b.Name
	c.x, c.y, c.low, c.high = b.Second, b.Median, b.Low, b.High
	return c
}

// chart is a plot of lines.
type chart struct {
	title, x, y string
	log         bool // both axes
	lines       []line
	legend      string     // corner: "top right" and so on; "" for none
	yRange      [2]float64 // the range of the axis, where it is not that of the values
}

// lossChart is a chart of losses on logarithmic axes.
func lossChart(title, x string) *chart {
	return &chart{title: title, x: x, y: "loss (KL per entry)", log: true}
}

func (c *chart) add(l ...line) { c.lines = append(c.lines, l...) }

func (c *chart) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = c.title
	p.Title.TextStyle.Font.Size = vg.Points(10)
	p.Title.Padding = vg.Points(4)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Size = vg.Points(9)
		a.Tick.Label.Font.Size = vg.Points(8)
		a.Label.Padding = vg.Points(3)
	}
	p.X.Label.Text, p.Y.Label.Text = c.x, c.y
	p.X.Tick.Marker, p.Y.Tick.Marker = plain{}, plain{}
	if c.log {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{205}, color.Gray{205}
	p.Add(grid)
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Legend.ThumbnailWidth = vg.Points(22)
	p.Legend.Padding = vg.Points(1.5)
	p.Legend.Top = c.legend == "top right" || c.legend == "top left"
	p.Legend.Left = c.legend == "top left" || c.legend == "bottom left"
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(-4), vg.Points(4)
	if p.Legend.Left {
		p.Legend.XOffs = vg.Points(4)
	}
	if p.Legend.Top {
		p.Legend.YOffs = vg.Points(-4)
	}
	for _, l := range c.lines {
		if l.low != nil {
			edge, back := c.points(l.x, l.high), c.points(l.x, l.low)
			slices.Reverse(back)
			if edge = append(edge, back...); len(edge) > 2 {
				band, err := plotter.NewPolygon(edge)
				if err != nil {
					return nil, err
				}
				band.Color = color.NRGBA{l.color.R, l.color.G, l.color.B, 50}
				band.LineStyle.Width = 0
				p.Add(band)
			}
		}
	}
	for _, l := range c.lines {
		xy := c.points(l.x, l.y)
		if len(xy) == 0 {
			continue
		}
		var thumbs []plot.Thumbnailer
		if !l.noLine {
			curve, err := plotter.NewLine(xy)
			if err != nil {
				return nil, err
			}
			curve.Color, curve.Width, curve.Dashes = l.color, vg.Points(1.6), dashes[l.dash]
			p.Add(curve)
			thumbs = append(thumbs, curve)
		}
		if l.points || l.noLine {
			marks, err := plotter.NewScatter(xy)
			if err != nil {
				return nil, err
			}
			marks.Color, marks.Radius = l.color, vg.Points(2.6)
			marks.Shape = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{},
				draw.CrossGlyph{}}[l.dash]
			p.Add(marks)
			thumbs = append(thumbs, marks)
		}
		if c.legend != "" && l.name != "" {
			p.Legend.Add(l.name, thumbs...)
		}
	}
	if c.yRange != [2]float64{} {
		p.Y.Min, p.Y.Max = c.yRange[0], c.yRange[1]
	}
	return p, nil
}

// points are those of a line that can be drawn.
func (c *chart) points(x, y []float64) (xy plotter.XYs) {
	for i := range x {
		if !math.IsNaN(x[i]) && !math.IsNaN(y[i]) && !math.IsInf(y[i], 0) &&
			!(c.log && min(x[i], y[i]) <= 0) {
			xy = append(xy, plotter.XY{X: x[i], Y: y[i]})
		}
	}
	return xy
}

// plain has the default ticks of a linear axis, without zeros at the end of labels.
type plain struct{}

func (plain) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = strconv.FormatFloat(report.Round(t.Value, 6), 'f', -1, 64)
		}
	}
	return ticks
}

// decades has the ticks of a logarithmic axis. Powers of ten have labels. Where there are fewer
// than two of them, 2 and 5 have labels, too.
type decades struct{}

func (decades) Ticks(low, high float64) []plot.Tick {
	if low <= 0 || high <= low {
		return nil
	}
	var ticks []plot.Tick
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	whole := math.Floor(math.Log10(high)+1e-9)-math.Ceil(math.Log10(low)-1e-9) >= 1
	every := max(1, math.Ceil((to-from)/7))
	for e := from; e <= to; e++ {
		for f := 1.0; f < 10; f++ {
			v := f * math.Pow(10, e)
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			label := ""
			if f == 1 && math.Mod(e-from, every) == 0 || !whole && (f == 1 || f == 2 || f == 5) {
				label = strconv.FormatFloat(v, 'f', -1, 64)
				if v < 0.9e-3 || v > 1.1e5 {
					label = strconv.Itoa(int(f)) + "e" + strconv.Itoa(int(e))
				}
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}

// figure draws rows of charts into figures/NAME.png, where figures are drawn; width and height are those of a
// chart, in centimetres.
func (w *writer) figure(name string, width, height float64, rows ...[]*chart) error {
	if !w.draw {
		return nil
	}
	cols := len(rows[0])
	image := vgimg.NewWith(vgimg.UseWH(vg.Length(width*float64(cols))*vg.Centimeter,
		vg.Length(height*float64(len(rows)))*vg.Centimeter), vgimg.UseDPI(140))
	canvas := draw.New(image)
	tiles := draw.Tiles{Rows: len(rows), Cols: cols, PadX: vg.Points(10), PadY: vg.Points(8),
		PadTop: vg.Points(4), PadBottom: vg.Points(4), PadLeft: vg.Points(4), PadRight: vg.Points(10)}
	for i, row := range rows {
		for j, c := range row {
			p, err := c.plot()
			if err != nil {
				return err
			}
			p.Draw(tiles.At(canvas, j, i))
		}
	}
	if err := os.MkdirAll("figures", 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join("figures", name+".png"))
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: image}).WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
