package main

// Kernels that go over numbers one by one are compiled from their loops in Go: such a kernel has no text
// here, but what its loop name_g in internal/kernel says. A loop has the form
//
//	x, t = x[:len(to)], t[:len(to)]            // says nothing here
//	var s [Lanes]float64                       // a sum in eight lanes
//	top := 0.0                                 // a maximum
//	for i, v := range to {
//		r := x[i] / max(v, low)                // variables, arithmetic and the functions of [compiler.call]
//		to[i] = r                              // numbers of slices, all at i
//		if r > 1 {                             // assignments that some lanes take
//			r = 0
//		}
//		s[i%Lanes] += float64(r * r)
//		top = max(top, r)                      // or min
//	}
//	out[0], out[1] = Reduce(&s), top           // or return one of them
//
// Its body may have loops over lists, for j := 1; j < len(list); j += 2, which read list[j] and list[j+1],
// and numbers of lists elsewhere, list[0]. Slices are of whole blocks then, there are no sums, and numbers of
// slices are read from memory each time. A variable has a name of its own. A sample's row of a plan is row :=
// levelsOf(e, i, m), and row[Lanes*j] level j. x[j*n+i] is the sample's number in row j of a matrix; all
// matrices of a kernel have rows as long. In such loops, if v > top { top = v } is a maximum.
//
// No product is fused with a sum, whether or not it is converted. Of a maximum with a bound, the other
// operand is kept where it is NaN, but 0 where the bound is 0.

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// compiler writes the loop of a kernel.
type compiler struct {
	f     *Func
	loop  *ast.RangeStmt
	index string
	bases map[string]Reg // of slices and structs
	over  []Reg          // those of slices that the loop goes over
	sums  map[string]Vec // the first register of each sum or maximum
	joins map[Vec]Op     // how numbers go into it, by that register
	room  Vec            // registers below it are the body's
	all   common

	// While the body is written, for one register of numbers:
	part part
	held map[string]Vec // registers of variables and of numbers of slices, by their text
	left map[string]int // how often each will still be read
	regs registers
	walk walk
}

// compile is the text of such a kernel.
func (f *Func) compile() {
	loop := f.inGo
	c := &compiler{f: f, bases: map[string]Reg{}, sums: map[string]Vec{}, joins: map[Vec]Op{},
		room: pick(f, Vec(32), 15, Vec(f.Vectors)),
		all:  common{places: map[string]Operand{}, hoisted: map[string]Vec{}}}
	body := loop.Body.List
	at := slices.IndexFunc(body, func(s ast.Stmt) bool { _, is := s.(*ast.RangeStmt); return is })
	c.loop = body[at].(*ast.RangeStmt)
	c.index = text(c.loop.Key)
	c.walk.nested = slices.ContainsFunc(c.loop.Body.List, isFor)
	c.arguments(loop.Type.Params)
	long := c.long()
	if c.walk.nested {
		c.room = Vec(f.Vectors) // there is no tail
	}
	if long {
		c.room = min(c.room, 28) // AVX-512 has tables in the others
		f.expReady()
	}
	for _, s := range body[:at] {
		c.before(s)
	}
	c.numbers(long)
	for _, s := range body[at+1:] {
		c.after(s)
	}
}

// arguments brings addresses and the length into registers. Where a loop with lists has more slices than
// there are registers, those that it goes over have one for how far it is, and their addresses stay where
// they are.
func (c *compiler) arguments(params *ast.FieldList) {
	free := []Reg{R5, R4, R3, R1, R6, R7, R8, R9}
	visited := c.reads()
	var levels ast.Expr // how many a plan has
	ast.Inspect(c.loop, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr:
			if c.strided(n) {
				c.walk.rows = n.Index.(*ast.BinaryExpr).X.(*ast.BinaryExpr).Y
			}
		case *ast.AssignStmt:
			if isLevelsOf(n.Rhs[0]) {
				args := n.Rhs[0].(*ast.CallExpr).Args
				c.walk.plan, c.walk.row, levels = text(args[0]), text(n.Lhs[0]), args[2]
			}
		}
		return true
	})
	if c.walk.rows != nil {
		c.f.moveR(planBlockR, c.count(c.walk.rows))
		c.f.shlR(planBlockR, Imm(3))
	}
	if c.walk.apart = c.walk.nested && (params.NumFields() > len(free) || c.walk.rows != nil); c.walk.apart {
		c.f.zeroR(apartAtR)
		c.over = []Reg{apartAtR}
	}
	for name, typ := range names(params) {
		switch typ.(type) {
		case *ast.ArrayType:
			_, over := visited[name+"["+c.index+"]"]
			over = over || name == text(c.loop.X)
			if over && c.walk.apart {
				continue
			}
			c.bases[name] = c.f.base(name, free[0])
			if over {
				c.over = append(c.over, free[0])
			}
			free = free[1:]
		case *ast.StarExpr:
			c.bases[name] = c.f.value(name, free[0])
			free = free[1:]
		case *ast.Ident:
			c.all.places[name] = c.f.arg(name)
		}
	}
	if _, is := c.f.offset[text(c.loop.X)+"_len"]; is {
		c.f.length(text(c.loop.X), countR)
	} else {
		c.f.value(text(c.loop.X), countR)
	}
	if levels != nil {
		c.f.planBlock(c.count(levels))
		if c.f.masked { // which takes four blocks at a time
			c.f.triple(threeBlocksR, planBlockR)
		}
	}
}

// long tells of a chain of operations that is worth to be woven.
func (c *compiler) long() (long bool) {
	ast.Inspect(c.loop.Body, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is {
			name := text(call.Fun)
			long = long || name == "expNear" || strings.HasPrefix(name, "elem.")
		}
		return true
	})
	return long
}

// reads counts how often the body reads each variable and number. What is only written is there with 0.
func (c *compiler) reads() map[string]int {
	n := map[string]int{}
	var count func(e ast.Node)
	count = func(e ast.Node) {
		ast.Inspect(e, func(e ast.Node) bool {
			switch e := e.(type) {
			case *ast.CallExpr:
				for _, a := range e.Args {
					count(a)
				}
				return false
			case *ast.Ident, *ast.IndexExpr, *ast.SelectorExpr:
				n[text(e.(ast.Expr))]++
				return false
			}
			return true
		})
	}
	var all func(b *ast.BlockStmt, chosen bool)
	all = func(b *ast.BlockStmt, chosen bool) {
		for _, s := range b.List {
			switch s := s.(type) {
			case *ast.AssignStmt:
				for _, e := range s.Rhs {
					count(e)
				}
				for _, e := range s.Lhs {
					n[text(e)] += 0
					if chosen || s.Tok != token.ASSIGN && s.Tok != token.DEFINE {
						n[text(e)]++ // it is made of what it was
					}
				}
			case *ast.IfStmt:
				count(s.Cond)
				all(s.Body, true)
			case *ast.ForStmt:
				all(s.Body, false)
			}
		}
	}
	all(c.loop.Body, false)
	return n
}

// before is a statement before the loop.
func (c *compiler) before(s ast.Stmt) {
	begin := func(name string, fill func(r Vec)) {
		c.room -= Vec(c.f.h())
		c.sums[name] = c.room
		for h := range c.f.registers(1) {
			fill(c.room + h)
		}
	}
	switch s := s.(type) {
	case *ast.DeclStmt:
		for _, v := range s.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Names {
			begin(v.Name, c.f.clear)
		}
	case *ast.AssignStmt:
		for i, v := range s.Lhs {
			switch from := s.Rhs[i].(type) {
			case *ast.BasicLit:
				begin(text(v), c.f.clear)
			case *ast.IndexExpr:
				begin(text(v), func(r Vec) { c.f.broadcast(r, mem(0, c.bases[text(from.X)])) })
			}
		}
	}
}

// numbers writes the loop.
func (c *compiler) numbers(long bool) {
	f, most := c.f, pick(c.f, 1, 1, 4)
	if long || c.walk.nested {
		most = 4
	}
	own := c.try()
	instances := max(1, min(most, int(c.room/own)))
	for _, name := range append(c.all.wanted, c.all.liked...) {
		if _, is := c.all.hoisted[name]; !is && c.room > own*Vec(instances) {
			c.room--
			c.all.hoisted[name] = c.room
			c.fill(c.room, name)
		}
	}
	own = c.try()
	if c.walk.nested {
		c.blocks(int(own), instances)
		return
	}
	some := 1
	if len(c.sums) > 0 {
		some = f.h()
		if long {
			c.manyBlocks(int(own), min(instances, int(c.room/own)))
		}
		instances = 1
	}
	f.each(c.over, some, int(own), instances, c.body)
}

// try returns how many registers the body uses.
func (c *compiler) try() Vec {
	f := c.f
	c.f = &Func{Arch: f.Arch, file: &File{constants: map[string][]uint64{}}, name: f.name, types: f.types,
		offset: f.offset}
	c.f.Table = f.table(c.f)
	c.all.wanted, c.all.liked = nil, nil
	if c.walk.nested {
		c.begin()
		c.inTurns(c.loop.Body.List, 1, f.Vectors)
	} else {
		c.body(c.f.whole(0))
	}
	c.f = f
	return Vec(len(c.regs.taken))
}

// manyBlocks goes over blocks whose registers are woven.
func (c *compiler) manyBlocks(own, instances int) {
	f, h := c.f, c.f.h()
	for instances > h && instances%h > 0 || instances < h && h%instances > 0 {
		instances--
	}
	if instances == 1 {
		return
	}
	all := max(instances, h)
	f.groups(countR, []int{all * f.Lanes}, func(n int) {
		for first := 0; first < all; first += instances {
			f.weave(instances, own, func(u int) { c.body(f.whole(first + u)) })
		}
		f.advance(8*n, c.over...)
	})
}

// after is a statement after the loop.
func (c *compiler) after(s ast.Stmt) {
	finish := func(to Operand, e ast.Expr) {
		if call, is := e.(*ast.CallExpr); is { // Reduce(&s)
			e = call.Args[0].(*ast.UnaryExpr).X
		}
		r := c.sums[text(e)]
		c.f.reduceBy(c.joins[r], r, V0)
		c.f.storeFirst(to, r)
	}
	switch s := s.(type) {
	case *ast.ReturnStmt:
		finish(c.f.result(), s.Results[0])
	case *ast.AssignStmt:
		for i, e := range s.Lhs {
			finish(mem(8*i, c.bases[text(e.(*ast.IndexExpr).X)]), s.Rhs[i])
		}
	}
}

// body writes the body for a register of numbers.
func (c *compiler) body(at part) {
	c.part = at
	c.begin()
	if v := c.loop.Value; v != nil && text(v) != "_" && c.left[text(v)] > 0 {
		r := c.regs.take()
		c.part.get(r, c.bases[text(c.loop.X)])
		c.held[text(v)] = r
	}
	for _, s := range c.loop.Body.List {
		c.statement(s)
	}
}

func (c *compiler) begin() {
	c.held, c.left, c.walk.fixed = map[string]Vec{}, c.reads(), map[string]bool{}
	c.regs = registers{nil, map[Vec]bool{}, map[Vec]int{}}
}
