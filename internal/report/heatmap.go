package report

// This file holds the heatmaps: what of the matrices they show, in which order
// and in which colours.

import (
	"bytes"
	"encoding/base64"
	"html/template"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"

	"github.com/quantmf/quantmf"
)

// most rows or columns of a heatmap: about one per pixel.
const most = 500

// reach is the number of standard deviations at which colours end.
const reach = 2.5

// heatmap is one of the panels.
type heatmap struct {
	Title, Alt string
	Image      template.URL
}

// shown says which rows and columns the heatmaps show, in their order.
type shown struct {
	rows, columns []int
}

// arrange picks rows and columns and orders them by the structure of the fit.
func arrange(x, fit quantmf.Mat) shown {
	spread := make([]float64, x.Rows)
	for i := range spread {
		spread[i] = deviation(x.Row(i))
	}
	rows := largest(spread, most)
	slices.Sort(rows)
	columns := make([]int, min(x.Cols, most))
	for j := range columns {
		columns[j] = j * x.Cols / len(columns)
	}
	byRow := make([][]float64, len(rows))
	byColumn := make([][]float64, len(columns))
	for j := range byColumn {
		byColumn[j] = make([]float64, len(rows))
	}
	for t, i := range rows {
		byRow[t] = at(standardised(fit.Row(i), fit.Row(i)), columns)
		for j, z := range byRow[t] {
			byColumn[j][t] = z
		}
	}
	return shown{at(rows, order(byRow)), at(columns, order(byColumn))}
}

// standardised returns v in standard deviations of by from its mean, 0 where by
// is constant or v is missing.
func standardised(v, by []float64) []float64 {
	z := make([]float64, len(v))
	m, s := mean(by), deviation(by)
	if !(s > 1e-12*math.Abs(m)) {
		return z
	}
	for j, x := range v {
		if x == x {
			z[j] = (x - m) / s
		}
	}
	return z
}

// draw paints v, each row standardised by the same row of by: one pixel an entry.
func (s shown) draw(v, by quantmf.Mat) template.URL {
	img := image.NewPaletted(image.Rect(0, 0, len(s.columns), len(s.rows)), diverging)
	for y, i := range s.rows {
		z := standardised(v.Row(i), by.Row(i))
		for x, j := range s.columns {
			img.SetColorIndex(x, y, shade(z[j]))
		}
	}
	return dataURI(img)
}

func shade(z float64) uint8 {
	return uint8(math.Round((min(max(z, -reach), reach)/reach + 1) / 2 * 255))
}

// scale is the picture of all colours, from the lowest to the highest.
func scale() template.URL {
	img := image.NewPaletted(image.Rect(0, 0, 256, 1), diverging)
	for x := range 256 {
		img.SetColorIndex(x, 0, uint8(x))
	}
	return dataURI(img)
}

func dataURI(img image.Image) template.URL {
	var b bytes.Buffer
	b.WriteString("data:image/png;base64,")
	to := base64.NewEncoder(base64.StdEncoding, &b)
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(to, img); err != nil {
		panic(err) // a buffer takes everything and the image has a size
	}
	to.Close()
	return template.URL(b.String())
}

// diverging runs from blue over near white to red in equal steps of perceived
// difference: straight lines in OKLab through these lightnesses, chromas and hues.
var diverging = palette([][3]float64{{0.36, 0.13, 264}, {0.66, 0.12, 245}, {0.97, 0.005, 90}, {0.70, 0.14, 48}, {0.40, 0.14, 27}})

func palette(anchors [][3]float64) color.Palette {
	p := make(color.Palette, 256)
	for i := range p {
		t := float64(i) / 255 * float64(len(anchors)-1)
		from := min(int(t), len(anchors)-2)
		t -= float64(from)
		l1, a1, b1 := oklab(anchors[from])
		l2, a2, b2 := oklab(anchors[from+1])
		p[i] = srgb(l1+t*(l2-l1), a1+t*(a2-a1), b1+t*(b2-b1))
	}
	return p
}

func oklab(lch [3]float64) (l, a, b float64) {
	sin, cos := math.Sincos(lch[2] * math.Pi / 180)
	return lch[0], lch[1] * cos, lch[1] * sin
}

// srgb converts from OKLab (Ottosson 2020).
func srgb(l, a, b float64) color.RGBA {
	cube := func(v float64) float64 { return v * v * v }
	long := cube(l + 0.3963377774*a + 0.2158037573*b)
	medium := cube(l - 0.1055613458*a - 0.0638541728*b)
	short := cube(l - 0.0894841775*a - 1.2914855480*b)
	channel := func(v float64) uint8 {
		v = min(max(v, 0), 1)
		if v <= 0.0031308 {
			v *= 12.92
		} else {
			v = 1.055*math.Pow(v, 1/2.4) - 0.055
		}
		return uint8(math.Round(255 * v))
	}
	return color.RGBA{
		channel(4.0767416621*long - 3.3077115913*medium + 0.2309699292*short),
		channel(-1.2684380046*long + 2.6097574011*medium - 0.3413193965*short),
		channel(-0.0041960863*long - 0.7034186147*medium + 1.7076147010*short),
		255,
	}
}
