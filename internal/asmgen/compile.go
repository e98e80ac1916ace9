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
// Its body may have loops over lists, for j := 1; j < len(list); j += 2, which read list[j] and list[j+1], and
// numbers of lists elsewhere, list[0]. Slices are of whole blocks then, there are no sums, and numbers of
// slices are read from memory each time. A variable has a name of its own. A sample's row
// of a plan is row := levelsOf(e, i, m), and row[Lanes*j] level j.
//
// No product is fused with a sum, whether or not it is converted. Of a maximum with a bound, the other
// operand is kept where it is NaN, but 0 where the bound is 0.

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"math"
	"path/filepath"
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
	get  get
	put  put
	h    Vec            // of a block
	tail bool           // of what is left after whole blocks
	held map[string]Vec // registers of variables and of numbers of slices, by their text
	left map[string]int // how often each will still be read
	regs registers

	// With loops over lists, for some registers of numbers in turns:
	nested bool
	first  int             // of these registers
	off    int             // of the one at hand, in bytes
	plan   string          // the slice that is one, "" for none
	row    string          // what a sample's row of it is called
	fixed  map[string]bool // variables that stay where they are
	listed map[string]Vec  // numbers of lists that have a register for all
}

// common is what is the same in all of the loop: parameters that are numbers, fields and constants.
type common struct {
	places  map[string]Operand // where it lies
	words   map[string]uint64  // constants
	hoisted map[string]Vec     // what has a register
	wanted  []string           // what would have one, each time
	liked   []string           // constants that need none
}

// registers are those of the body.
type registers struct {
	taken   []bool       // as far as they were in use
	owned   map[Vec]bool // those that the expression at hand alone reads
	waiting map[Vec]int  // those of operands that wait for the other one
}

// source is what internal/kernel says: functions and structs by name, and the values of constants.
var source struct {
	functions map[string]*ast.FuncDecl
	structs   map[string]*ast.StructType
	info      types.Info
}

// readSource reads it. Types of other packages are not known, which matters to no constant.
func readSource(root string) {
	set := token.NewFileSet()
	var files []*ast.File
	source.functions, source.structs = map[string]*ast.FuncDecl{}, map[string]*ast.StructType{}
	names, err := filepath.Glob(filepath.Join(root, "internal", "kernel", "*.go"))
	for _, name := range names {
		if base := filepath.Base(name); strings.HasPrefix(base, "kernel_") ||
			strings.HasSuffix(base, "_test.go") {
			continue
		}
		var file *ast.File
		if file, err = parser.ParseFile(set, name, nil, parser.SkipObjectResolution); err != nil {
			break
		}
		files = append(files, file)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				source.functions[n.Name.Name] = n
			case *ast.TypeSpec:
				source.structs[n.Name.Name], _ = n.Type.(*ast.StructType)
			}
			return true
		})
	}
	if err != nil {
		panic(err)
	}
	source.info.Types = map[ast.Expr]types.TypeAndValue{}
	(&types.Config{Error: func(error) {}}).Check("kernel", set, files, &source.info)
}

func text(e ast.Expr) string { return types.ExprString(e) }

// compile is the text of such a kernel.
func (f *Func) compile() {
	loop := f.inGo
	c := &compiler{f: f, bases: map[string]Reg{}, sums: map[string]Vec{}, joins: map[Vec]Op{},
		room: pick(f, Vec(32), 15, Vec(f.Vectors)),
		all:  common{map[string]Operand{}, map[string]uint64{}, map[string]Vec{}, nil, nil}}
	body := loop.Body.List
	at := slices.IndexFunc(body, func(s ast.Stmt) bool { _, is := s.(*ast.RangeStmt); return is })
	c.loop = body[at].(*ast.RangeStmt)
	c.index = text(c.loop.Key)
	c.nested = slices.ContainsFunc(c.loop.Body.List, isFor)
	c.arguments(loop.Type.Params.List)
	long := c.long()
	if c.nested {
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

// arguments brings addresses and the length into registers.
func (c *compiler) arguments(params []*ast.Field) {
	free := []Reg{R5, R4, R3, R1, R6, R7, R8, R9}
	visited := c.reads()
	for _, field := range params {
		for _, n := range field.Names {
			switch field.Type.(type) {
			case *ast.ArrayType:
				c.bases[n.Name] = c.f.base(n.Name, free[0])
				if _, is := visited[n.Name+"["+c.index+"]"]; is || n.Name == text(c.loop.X) {
					c.over = append(c.over, free[0])
				}
				free = free[1:]
			case *ast.StarExpr:
				c.bases[n.Name] = c.f.value(n.Name, free[0])
				free = free[1:]
			case *ast.Ident:
				c.all.places[n.Name] = c.f.arg(n.Name)
			}
		}
	}
	c.f.length(text(c.loop.X), R2)
	ast.Inspect(c.loop, func(n ast.Node) bool {
		s, is := n.(*ast.AssignStmt)
		if is && isLevelsOf(s.Rhs[0]) {
			call := s.Rhs[0].(*ast.CallExpr)
			c.plan, c.row = text(call.Args[0]), text(s.Lhs[0])
			levels := call.Args[2]
			if list, is := levels.(*ast.CallExpr); is {
				c.f.length(text(list.Args[0]), planBlockR)
			} else {
				c.f.value(text(levels), planBlockR)
			}
			c.f.shlR(planBlockR, Imm(6))
		}
		return c.plan == ""
	})
}

// planBlockR has the bytes of a block of a plan, entryR the place of the level at hand of the first block.
const planBlockR, entryR = R9, R8

// inPlan tells of an entry of a plan.
func (c *compiler) inPlan(e *ast.IndexExpr) bool { return c.plan != "" && text(e.X) == c.row }

// isLevelsOf tells of the row of a sample in a plan.
func isLevelsOf(e ast.Expr) bool {
	call, is := e.(*ast.CallExpr)
	return is && text(call.Fun) == "levelsOf"
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
		c.f.halves(func(h Vec, _ int) { fill(c.room + h) })
	}
	switch s := s.(type) {
	case *ast.DeclStmt:
		for _, v := range s.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Names {
			begin(v.Name, func(r Vec) { c.f.clear(r) })
		}
	case *ast.AssignStmt:
		for i, v := range s.Lhs {
			switch from := s.Rhs[i].(type) {
			case *ast.BasicLit:
				begin(text(v), func(r Vec) { c.f.clear(r) })
			case *ast.IndexExpr:
				begin(text(v), func(r Vec) { c.f.broadcast(r, mem(0, c.bases[text(from.X)])) })
			}
		}
	}
}

// numbers writes the loop.
func (c *compiler) numbers(long bool) {
	f, most := c.f, pick(c.f, 1, 1, 4)
	if long || c.nested {
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
	if c.nested {
		c.blocks(int(own), instances)
		return
	}
	if len(c.sums) == 0 {
		limit := int(own) * instances
		if instances == 1 {
			own = 0
		}
		f.each(c.over, R2, int(own), limit, func(get get, put put) { c.body(get, put) })
		return
	}
	if long {
		c.manyBlocks(int(own), min(instances, int(c.room/own)))
	}
	f.blocks(c.over, R2, func(h Vec, tail bool, get get, put put) {
		c.h, c.tail = h, tail
		c.body(get, put)
	})
}

// try returns how many registers the body uses.
func (c *compiler) try() Vec {
	f := c.f
	c.f = &Func{Arch: f.Arch, file: &File{constants: map[string][]uint64{}}, name: f.name, types: f.types,
		offset: f.offset}
	c.all.wanted, c.all.liked = nil, nil
	if c.nested {
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
	c.tail = false
	all := max(instances, h)
	f.groups(R2, []int{all * f.Lanes}, func(n int) {
		for first := 0; first < all; first += instances {
			f.weave(instances, own, func(u int) {
				c.h = Vec((first + u) % h)
				c.body(f.whole(8 * f.Lanes * (first + u)))
			})
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
		c.f.Arch.reduce(c.f, c.joins[r], []Vec{r, r + 1, r + 2, r + 3}[:c.f.h()], V0)
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
func (c *compiler) body(get get, put put) {
	c.get, c.put = get, put
	c.begin()
	if v := c.loop.Value; v != nil && text(v) != "_" && c.left[text(v)] > 0 {
		r := c.regs.take()
		c.get(r, c.bases[text(c.loop.X)])
		c.held[text(v)] = r
	}
	for _, s := range c.loop.Body.List {
		c.statement(s)
	}
}

func (c *compiler) begin() {
	c.held, c.left, c.fixed = map[string]Vec{}, c.reads(), map[string]bool{}
	c.regs = registers{nil, map[Vec]bool{}, map[Vec]int{}}
}

// blocks goes over whole blocks, several at a time where there are registers for them.
func (c *compiler) blocks(own, instances int) {
	f, h := c.f, c.f.h()
	for h > 1 && instances&(instances-1) > 0 {
		instances--
	}
	if c.plan != "" {
		instances = min(instances, 3*h) // so many that planBlockR has an index for
	}
	f.shrR(R2, Imm(3))
	f.groups(R2, slices.Compact([]int{max(1, instances/h), 1}), func(n int) {
		side := min(instances, n*h)
		for c.first = 0; c.first < n*h; c.first += side {
			c.begin()
			c.inTurns(c.loop.Body.List, side, own)
		}
		f.advance(64*n, c.over...)
		for range n {
			if c.plan != "" {
				f.addR(c.bases[c.plan], planBlockR)
			}
		}
	})
}

func isFor(s ast.Stmt) bool { _, is := s.(*ast.ForStmt); return is }

// inTurns writes statements for some registers of numbers, each with its own registers.
func (c *compiler) inTurns(all []ast.Stmt, some, own int) {
	for len(all) > 0 {
		n := slices.IndexFunc(all, isFor)
		if n == 0 {
			c.overList(all[0].(*ast.ForStmt), some, own)
			all = all[1:]
			continue
		}
		if n < 0 {
			n = len(all)
		}
		held, left, regs := c.held, c.left, c.regs
		c.f.weave(some, own, func(u int) {
			c.off = 8 * c.f.Lanes * (c.first + u)
			c.held, c.left = maps.Clone(held), maps.Clone(left)
			c.regs = registers{slices.Clone(regs.taken), maps.Clone(regs.owned), maps.Clone(regs.waiting)}
			for _, s := range all[:n] {
				c.statement(s)
			}
		})
		all = all[n:]
	}
}

// listAtR counts in a loop over a list.
const listAtR = R10

// overList writes a loop over a list. What it reads is there for its next turn.
func (c *compiler) overList(s *ast.ForStmt, some, own int) {
	const often = 1 << 20
	f := c.f
	for name := range c.held {
		c.left[name] += often
		c.fixed[name] = true
	}
	number := func(e ast.Expr) Imm {
		n, _ := constant.Int64Val(source.info.Types[e].Value)
		return Imm(n)
	}
	step := Imm(1)
	if by, is := s.Post.(*ast.AssignStmt); is {
		step = number(by.Rhs[0])
	}
	next, done := f.label("next"), f.label("done")
	last := s.Cond.(*ast.BinaryExpr).Y
	end := text(last)
	if list, is := last.(*ast.CallExpr); is {
		end = text(list.Args[0]) + "_len"
	}
	f.moveR(listAtR, number(s.Init.(*ast.AssignStmt).Rhs[0]))
	if c.plan != "" {
		f.moveR(entryR, c.bases[c.plan])
	}
	f.branch(listAtR, GE, f.arg(end), done)
	f.at(next)
	c.listed = map[string]Vec{}
	c.shareNumbers(s.Body, c.room, Vec(own*some))
	c.inTurns(s.Body.List, some, own)
	c.listed = nil
	if c.plan != "" {
		f.advance(64, entryR)
	}
	f.addR(listAtR, step)
	f.branch(listAtR, LT, f.arg(end), next)
	f.at(done)
	for name, r := range c.held {
		if c.left[name] -= often; c.left[name] == 0 {
			delete(c.held, name)
			c.regs.taken[r] = false
		}
	}
	clear(c.fixed)
}

// shareNumbers brings numbers of lists into registers from one down, as long as they are not below another.
func (c *compiler) shareNumbers(body ast.Node, from, low Vec) {
	ast.Inspect(body, func(n ast.Node) bool {
		x, is := n.(*ast.IndexExpr)
		if !is || text(x.Index) == c.index || c.inPlan(x) || from <= low {
			return true
		}
		if _, is := c.listed[text(x)]; !is {
			from--
			c.f.broadcast(from, c.numberAt(x))
			c.listed[text(x)] = from
		}
		return true
	})
}

// statement writes one of the body.
func (c *compiler) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.IfStmt:
		c.choose(s)
	case *ast.AssignStmt:
		if sum, is := c.sumOf(s.Lhs[0]); is {
			c.add(sum, s)
			return
		}
		if name := text(s.Lhs[0]); c.fixed[name] {
			c.renew(c.held[name], s)
			return
		}
		if x, is := s.Lhs[0].(*ast.IndexExpr); is && c.nested {
			r := c.register(c.value(s.Rhs[0]))
			c.f.store(c.place(x), r)
			c.regs.free(r)
			return
		}
		if isLevelsOf(s.Rhs[0]) { // that is where it is
			s = &ast.AssignStmt{Lhs: s.Lhs[1:], Tok: s.Tok, Rhs: s.Rhs[1:]}
		}
		var values []Vec
		for i, e := range s.Rhs {
			if s.Tok != token.ASSIGN && s.Tok != token.DEFINE {
				e = &ast.BinaryExpr{X: s.Lhs[i], Op: s.Tok - token.ADD_ASSIGN + token.ADD, Y: e}
			}
			r := c.register(c.value(e))
			if !c.regs.owned[r] { // a variable that will be read again
				to := c.regs.take()
				c.f.copy(to, r)
				r = to
			}
			c.regs.waiting[r]++
			values = append(values, r)
		}
		for i, e := range s.Lhs {
			c.regs.waiting[values[i]]--
			c.assign(e, values[i])
		}
	}
}

// renew gives a new value to a variable that stays in its register.
func (c *compiler) renew(to Vec, s *ast.AssignStmt) {
	var x, y Operand
	var op Op
	switch e := s.Rhs[0].(type) {
	case *ast.BinaryExpr:
		x, y = c.both(e.X, e.Y)
		op = operations[e.Op]
	case *ast.CallExpr:
		x, y = c.both(e.Args[0], e.Args[1])
		op = opMax
	default: // by the operation of the assignment
		x, y = c.both(s.Lhs[0], e)
		op = operations[s.Tok-token.ADD_ASSIGN+token.ADD]
	}
	a := c.register(x)
	c.f.vecOp(c.f, op, to, a, y)
	c.regs.free(a)
	c.regs.free(y)
}

// assign gives a register to a variable, or to a number of a slice, which is stored.
func (c *compiler) assign(to ast.Expr, r Vec) {
	name := text(to)
	if x, is := to.(*ast.IndexExpr); is {
		c.put(c.bases[text(x.X)], r)
	}
	if old, is := c.held[name]; is && old != r {
		c.regs.taken[old] = false
	}
	delete(c.held, name)
	if c.left[name] > 0 {
		c.held[name], c.regs.owned[r] = r, false
	} else {
		c.regs.free(r)
	}
}

// sumOf returns the register of a sum or a maximum.
func (c *compiler) sumOf(e ast.Expr) (Vec, bool) {
	if x, is := e.(*ast.IndexExpr); is {
		e = x.X
	}
	r, is := c.sums[text(e)]
	return r + c.h, is
}

// add adds to a sum, or takes a maximum or a minimum with it.
func (c *compiler) add(sum Vec, s *ast.AssignStmt) {
	e, op := s.Rhs[0], opAdd
	if call, is := e.(*ast.CallExpr); is && s.Tok == token.ASSIGN {
		e, op = call.Args[1], map[string]Op{"max": opMax, "min": opMin}[text(call.Fun)]
	}
	r := c.register(c.value(e))
	if c.tail {
		to := c.regs.to(r)
		if to != r {
			c.f.copy(to, r)
			c.regs.free(r)
		}
		c.f.hold(to, true)
		r = to
	}
	c.joins[sum-c.h] = op
	c.f.vecOp(c.f, op, sum, sum, r)
	c.regs.free(r)
}

// comparisons are those that conditions may have.
var comparisons = map[token.Token]Cmp{token.LSS: less, token.GTR: greater, token.GEQ: atLeast}

// choose writes assignments that the lanes take in which a condition holds. Where the chain is long and AVX2
// weaves nothing, it is left out if no lane takes it.
func (c *compiler) choose(s *ast.IfStmt) {
	f, cond := c.f, s.Cond.(*ast.BinaryExpr)
	if then := s.Body.List[0].(*ast.AssignStmt); cond.Op == token.GTR &&
		text(then.Lhs[0]) == text(cond.Y) && text(then.Rhs[0]) == text(cond.X) { // if v > top { top = v }
		c.left[text(cond.X)]-- // it is read once
		v := c.register(c.value(cond.X))
		f.max(c.held[text(cond.Y)], v, c.held[text(cond.Y)])
		c.regs.free(v)
		return
	}
	x, y := c.both(cond.X, cond.Y)
	a, t := c.register(x), V0
	if !f.masked {
		t = c.regs.take()
	}
	before := maps.Clone(c.held)
	none, skip := f.label("none"), f.Lanes == 4 && f.own == 0 && c.long()
	if skip {
		f.compare(f.mask(t), a, comparisons[cond.Op], y)
		f.line("VMOVMSKPD Y%d, %s", f.vec(t), f.regs[R12])
		f.branch(R12, EQ, Imm(0), none)
	}
	c.regs.waiting[a]++
	for _, s := range s.Body.List {
		s := s.(*ast.AssignStmt)
		no := c.read(s.Lhs[0])
		c.regs.waiting[no]++
		yes := c.value(s.Rhs[0])
		if !skip { // not before: in AVX-512 logarithms have the same mask
			f.compare(f.mask(t), a, comparisons[cond.Op], y)
		}
		f.choose(f.mask(t), no, yes, no)
		c.regs.free(yes)
		c.regs.waiting[no]--
		c.assign(s.Lhs[0], no)
	}
	c.regs.waiting[a]--
	c.regs.free(a)
	c.regs.free(y)
	if !f.masked {
		c.regs.free(t)
	}
	if skip {
		for name, r := range c.held {
			if _, is := before[name]; !is { // it is not there where nothing was done
				delete(c.held, name)
				c.regs.taken[r] = false
			}
		}
		f.at(none)
	}
}

// Registers.

// take returns one that is free.
func (s *registers) take() Vec {
	r := slices.Index(s.taken, false)
	if r < 0 {
		r = len(s.taken)
		s.taken = append(s.taken, false)
	}
	s.taken[r], s.owned[Vec(r)] = true, true
	return Vec(r)
}

// free gives an operand back that nothing else will read.
func (s *registers) free(o Operand) {
	if r, is := o.(Vec); is && s.owned[r] && s.waiting[r] == 0 && int(r) < len(s.taken) {
		s.taken[r] = false
	}
}

// to returns a register for a result: one of the operands, or another.
func (s *registers) to(operands ...Operand) Vec {
	for _, o := range operands {
		if r, is := o.(Vec); is && s.owned[r] && s.waiting[r] == 0 {
			return r
		}
	}
	return s.take()
}

// Values.

// fill brings into a register what is the same in all of the loop.
func (c *compiler) fill(r Vec, name string) {
	switch place := c.all.places[name].(type) {
	case Const:
		c.f.load(r, c.f.w(name, c.all.words[name]))
	default:
		c.f.broadcast(r, place)
	}
}

// same returns the register of what is the same in all of the loop.
func (c *compiler) same(name string) Vec {
	if r, is := c.all.hoisted[name]; is {
		return r
	}
	c.all.wanted = append(c.all.wanted, name)
	r := c.regs.take()
	c.fill(r, name)
	return r
}

// register returns the register of an operand.
func (c *compiler) register(o Operand) Vec {
	switch o := o.(type) {
	case Const:
		return c.same(o.name)
	case Mem:
		r := c.regs.take()
		c.f.load(r, o)
		return r
	}
	return o.(Vec)
}

// operations are those of arithmetic.
var operations = map[token.Token]Op{token.ADD: opAdd, token.SUB: opSub, token.MUL: opMul, token.QUO: opDiv}

// value writes an expression and returns its operand, a Vec or a Const, or a Mem where there are loops.
func (c *compiler) value(e ast.Expr) Operand {
	if v := source.info.Types[e].Value; v != nil {
		number, _ := constant.Float64Val(constant.ToFloat(v))
		name := fmt.Sprintf("x%016x", bits(number))
		if id, is := e.(*ast.Ident); is {
			name = id.Name
		}
		k := c.constant(name, number)
		if r, is := c.all.hoisted[name]; is {
			return r
		}
		c.all.liked = append(c.all.liked, name)
		return k
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.value(e.X)
	case *ast.UnaryExpr:
		return c.unary(c.f.negate, e.X)
	case *ast.BinaryExpr:
		x, y := c.both(e.X, e.Y)
		if _, is := x.(Vec); !is && (e.Op == token.ADD || e.Op == token.MUL) {
			x, y = y, x
		}
		return c.binary(operations[e.Op], c.register(x), y)
	case *ast.CallExpr:
		return c.call(text(e.Fun), e.Args)
	case *ast.IndexExpr:
		if c.nested {
			return c.number(e)
		}
	}
	return c.read(e)
}

// constant is the operand of a number.
func (c *compiler) constant(name string, v float64) Const {
	c.all.words[name], c.all.places[name] = bits(v), Const{name}
	return c.f.w(name, bits(v))
}

// both writes two expressions.
func (c *compiler) both(x, y ast.Expr) (a, b Operand) {
	a = c.value(x)
	r, is := a.(Vec)
	if is {
		c.regs.waiting[r]++
	}
	b = c.value(y)
	if is {
		c.regs.waiting[r]--
	}
	return a, b
}

func (c *compiler) binary(op Op, a Vec, b Operand) Vec {
	to := c.regs.to(a, b)
	c.f.vecOp(c.f, op, to, a, b)
	if a != to {
		c.regs.free(a)
	}
	if b != Operand(to) {
		c.regs.free(b)
	}
	return to
}

func (c *compiler) unary(op func(dst, a Vec), x ast.Expr) Vec {
	a := c.register(c.value(x))
	to := c.regs.to(a)
	op(to, a)
	if a != to {
		c.regs.free(a)
	}
	return to
}

// call writes a function of a number, or of two.
func (c *compiler) call(name string, args []ast.Expr) Operand {
	switch name {
	case "float64":
		return c.value(args[0])
	case "max", "min", "atLeast":
		op := opMax
		if name == "min" {
			op = opMin
		}
		x, y := c.both(args[0], args[1])
		if c.bound(args[1]) {
			x, y = Operand(c.register(y)), x // the bound goes first
		}
		return c.binary(op, c.register(x), y)
	case "math.Inf":
		return c.constant("neginf", math.Inf(-1))
	case "math.Abs":
		return c.unary(c.f.magnitude, args[0])
	case "math.Sqrt":
		return c.unary(c.f.sqrt, args[0])
	case "elem.Exp":
		return c.function(c.f.expAll, c.register(c.value(args[0])))
	case "elem.Log":
		log := c.f.logAll
		if bound, is := args[0].(*ast.CallExpr); is && text(bound.Fun) == "max" {
			log = c.f.logAbove
		}
		return c.function(log, c.register(c.value(args[0])))
	case "expNear":
		return c.function(c.f.exp, c.register(c.value(args[0])))
	case "elem.RoughLog2":
		a := c.register(c.value(args[0]))
		var r [5]Vec
		for i := range r {
			r[i] = c.regs.take()
		}
		c.f.roughLogBy(V0, 0, a, r[0], r[1], r[2], r[3], r[4])
		for _, t := range r {
			c.regs.free(t)
		}
		return a
	case "elem.Logistic":
		e := c.function(c.f.expAll, c.unary(c.f.negate, args[0]))
		one := c.register(c.constant("one", 1))
		e = c.binary(opAdd, e, one)
		return c.binary(opDiv, one, e)
	}
	c.f.fail("cannot compile %s", name)
	return nil
}

// place is that of a number of a slice or of a plan.
func (c *compiler) place(e *ast.IndexExpr) Mem {
	if !c.inPlan(e) {
		return mem(c.off, c.bases[text(e.X)])
	}
	block := c.off / 64
	return mem(c.off%64, entryR, Index{planBlockR, block})
}

// number is the operand of a number of a slice, or of one of a list.
func (c *compiler) number(e *ast.IndexExpr) Operand {
	if text(e.Index) == c.index || c.inPlan(e) {
		return c.place(e)
	}
	if r, is := c.listed[text(e)]; is {
		return r
	}
	r := c.regs.take()
	c.f.broadcast(r, c.numberAt(e))
	return r
}

// numberAt is the place of a number of a list.
func (c *compiler) numberAt(e *ast.IndexExpr) Mem {
	base := c.bases[text(e.X)]
	place := mem(0, base, listAtR.times(8))
	at := e.Index
	if sum, is := at.(*ast.BinaryExpr); is { // list[j+1]
		at = sum.Y
	} else if v := source.info.Types[at].Value; v != nil {
		place = mem(0, base)
	}
	if v := source.info.Types[at].Value; v != nil {
		n, _ := constant.Int64Val(v)
		place.Off = 8 * int(n)
	}
	return place
}

// bound tells of what is a number, not 0, or the same in all of the loop.
func (c *compiler) bound(e ast.Expr) bool {
	if v := source.info.Types[e].Value; v != nil {
		return constant.Sign(v) != 0
	}
	return c.all.places[text(e)] != nil
}

// function writes one that has scratch.
func (c *compiler) function(g func(out, x, a, b, c, d, e Vec), x Vec) Vec {
	var r [6]Vec
	for i := range r {
		r[i] = c.regs.take()
	}
	g(r[0], x, r[1], r[2], r[3], r[4], r[5])
	for _, t := range r[1:] {
		c.regs.free(t)
	}
	c.regs.free(x)
	return r[0]
}

// read returns the register of a variable, of a number of a slice, or of a parameter.
func (c *compiler) read(e ast.Expr) Vec {
	name := text(e)
	if s, is := e.(*ast.SelectorExpr); is {
		c.all.places[name] = c.f.field(c.bases[text(s.X)], name)
	}
	if c.all.places[name] != nil {
		return c.same(name)
	}
	r, is := c.held[name]
	if !is {
		r = c.regs.take()
		c.get(r, c.bases[text(e.(*ast.IndexExpr).X)])
		c.held[name] = r
	}
	c.left[name]--
	if c.regs.owned[r] = c.left[name] == 0; c.regs.owned[r] {
		delete(c.held, name)
	}
	return r
}
