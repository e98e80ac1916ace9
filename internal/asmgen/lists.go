package main

// Bodies with loops over lists (compile.go): some registers of numbers go side by side, each instruction for
// all of them in turns, and a number of a list is brought into a register once for all where there is one.

import (
	"go/ast"
	"go/constant"
	"go/token"
	"maps"
	"slices"
)

// walk is what a body with loops over lists has, for some registers of numbers in turns.
type walk struct {
	nested bool
	apart  bool            // slices that it goes over lie apartAtR after their addresses
	first  int             // of these registers
	off    int             // of the one at hand, in bytes
	plan   string          // the slice that is one, "" for none
	rows   ast.Expr        // the length of the rows of matrices, nil for none; a plan has none beside it
	row    string          // what a sample's row of it is called
	fixed  map[string]bool // variables that stay where they are
	listed map[string]Vec  // numbers of lists that have a register for all
}

// planBlockR has the bytes of a block of a plan, threeBlocksR three times these, entryR the place of the
// level at hand of the first block; with matrices the bytes of a row, and how far the row at hand is.
const planBlockR, threeBlocksR, entryR = R9, R12, R8

// planBlock makes planBlockR ready for a plan of as many levels.
func (f *Func) planBlock(levels Operand) {
	f.moveR(planBlockR, levels)
	f.shlR(planBlockR, Imm(6))
}

// apartAtR says how far slices have been gone over that have no registers of their own, apartR is the address
// of the one at hand.
const apartAtR, apartR = R11, R0

// strided tells of a sample's number in a row of a matrix, x[j*n+i].
func (c *compiler) strided(e *ast.IndexExpr) bool {
	sum, is := e.Index.(*ast.BinaryExpr)
	if !is || text(sum.Y) != c.index {
		return false
	}
	row, is := sum.X.(*ast.BinaryExpr)
	return is && row.Op == token.MUL
}

// inPlan tells of an entry of a plan.
func (c *compiler) inPlan(e *ast.IndexExpr) bool { return c.walk.plan != "" && text(e.X) == c.walk.row }

// isLevelsOf tells of the row of a sample in a plan.
func isLevelsOf(e ast.Expr) bool {
	call, is := e.(*ast.CallExpr)
	return is && text(call.Fun) == "levelsOf"
}

// blocks goes over whole blocks, several at a time where there are registers for them.
func (c *compiler) blocks(own, instances int) {
	f, h := c.f, c.f.h()
	for h > 1 && instances&(instances-1) > 0 {
		instances--
	}
	f.shrR(countR, Imm(3))
	f.groups(countR, slices.Compact([]int{max(1, instances/h), 1}), func(n int) {
		side := min(instances, n*h)
		for c.walk.first = 0; c.walk.first < n*h; c.walk.first += side {
			c.begin()
			c.inTurns(c.loop.Body.List, side, own)
		}
		f.advance(64*n, c.over...)
		for range n {
			if c.walk.plan != "" {
				f.addR(c.bases[c.walk.plan], planBlockR)
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
			c.walk.off = 8 * c.f.Lanes * (c.walk.first + u)
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
		c.walk.fixed[name] = true
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
	first, cond := s.Init.(*ast.AssignStmt).Rhs[0], s.Cond.(*ast.BinaryExpr)
	if c.walk.plan != "" {
		f.moveR(entryR, c.bases[c.walk.plan])
	} else if c.walk.rows != nil {
		f.moveR(entryR, apartAtR)
	}
	var last Operand
	goes, ends := LT, GE
	if cond.Op == token.LSS {
		f.moveR(listAtR, number(first))
		last = c.count(cond.Y)
	} else { // down from len(list) - 1, to a number
		f.moveR(listAtR, c.count(first.(*ast.BinaryExpr).X))
		f.decR(listAtR)
		f.addR(entryR, planBlockR)
		f.advance(-64, entryR)
		last, step = number(cond.Y), -step
		if goes, ends = GE, LT; cond.Op == token.GTR {
			goes, ends = GT, LE
		}
	}
	f.branch(listAtR, ends, last, done)
	f.at(next)
	c.walk.listed = map[string]Vec{}
	c.shareNumbers(s.Body, c.room, Vec(own*some))
	c.inTurns(s.Body.List, some, own)
	c.walk.listed = nil
	if c.walk.plan != "" {
		f.advance(64*int(step), entryR)
	} else if c.walk.rows != nil {
		f.addR(entryR, planBlockR)
	}
	f.addR(listAtR, step)
	f.branch(listAtR, goes, last, next)
	f.at(done)
	for name, r := range c.held {
		if c.left[name] -= often; c.left[name] == 0 {
			delete(c.held, name)
			c.regs.taken[r] = false
		}
	}
	clear(c.walk.fixed)
}

// count is the operand of an argument that counts: m, or len(list).
func (c *compiler) count(e ast.Expr) Operand {
	if call, is := e.(*ast.CallExpr); is {
		return c.f.arg(text(call.Args[0]) + "_len")
	}
	return c.f.arg(text(e))
}

// shareNumbers brings numbers of lists into registers from one down, as long as they are not below another.
func (c *compiler) shareNumbers(body ast.Node, from, low Vec) {
	ast.Inspect(body, func(n ast.Node) bool {
		x, is := n.(*ast.IndexExpr)
		if !is || text(x.Index) == c.index || c.inPlan(x) || c.strided(x) || from <= low {
			return true
		}
		if _, is := c.walk.listed[text(x)]; !is {
			from--
			c.f.broadcast(from, c.numberAt(x))
			c.walk.listed[text(x)] = from
		}
		return true
	})
}

// place is that of a number of a slice or of a plan.
func (c *compiler) place(e *ast.IndexExpr) Mem {
	if c.strided(e) {
		return mem(c.walk.off, c.bases[text(e.X)], entryR.times(1))
	}
	if !c.inPlan(e) && c.walk.apart {
		c.f.base(text(e.X), apartR)
		return mem(c.walk.off, apartR, apartAtR.times(1))
	}
	if !c.inPlan(e) {
		return mem(c.walk.off, c.bases[text(e.X)])
	}
	if c.walk.off/64 == 3 {
		return mem(0, entryR, threeBlocksR.times(1))
	}
	return mem(c.walk.off%64, entryR, planBlockR.times(c.walk.off/64))
}

// number is the operand of a number of a slice, or of one of a list.
func (c *compiler) number(e *ast.IndexExpr) Operand {
	if text(e.Index) == c.index || c.inPlan(e) || c.strided(e) {
		return c.place(e)
	}
	if r, is := c.walk.listed[text(e)]; is {
		return r
	}
	at := Repeat{c.numberAt(e)}
	if c.f.masked { // instructions take such a number
		return at
	}
	return c.register(at)
}

// numberAt is the place of a number of a list.
func (c *compiler) numberAt(e *ast.IndexExpr) Mem {
	place := mem(0, c.bases[text(e.X)], listAtR.times(8))
	at, sign := e.Index, 1
	if sum, is := at.(*ast.BinaryExpr); is { // list[j+1]
		if at = sum.Y; sum.Op == token.SUB {
			sign = -1
		}
	}
	if v := source.info.Types[at].Value; v != nil {
		if at == e.Index { // list[0]
			place.Index = Index{}
		}
		n, _ := constant.Int64Val(v)
		place.Off = 8 * sign * int(n)
	}
	return place
}
