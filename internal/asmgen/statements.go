package main

// Statements of a body that is compiled (compile.go).

import (
	"go/ast"
	"go/token"
	"maps"
)

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
		if name := text(s.Lhs[0]); c.walk.fixed[name] {
			c.renew(c.held[name], s)
			return
		}
		if x, is := s.Lhs[0].(*ast.IndexExpr); is && c.walk.nested {
			r := c.register(c.value(s.Rhs[0]))
			c.f.store(c.place(x), r)
			c.regs.free(r)
			return
		}
		if isLevelsOf(s.Rhs[0]) { // that is where it is
			s = &ast.AssignStmt{Lhs: s.Lhs[1:], Tok: s.Tok, Rhs: s.Rhs[1:]}
		}
		var values []Vec
		for i := range s.Rhs {
			r := c.own(c.register(c.value(assigned(s, i))))
			c.regs.waiting[r]++
			values = append(values, r)
		}
		for i, e := range s.Lhs {
			c.regs.waiting[values[i]]--
			c.assign(e, values[i])
		}
	}
}

// assigned is the expression that a statement assigns to the i-th variable.
func assigned(s *ast.AssignStmt, i int) ast.Expr {
	if s.Tok == token.ASSIGN || s.Tok == token.DEFINE {
		return s.Rhs[i]
	}
	return &ast.BinaryExpr{X: s.Lhs[i], Op: s.Tok - token.ADD_ASSIGN + token.ADD, Y: s.Rhs[i]}
}

// own returns a register with the number of another that nothing else will read: that one, or a copy of a
// variable that will be read again.
func (c *compiler) own(r Vec) Vec {
	to := c.regs.to(r)
	if to != r {
		c.f.copy(to, r)
	}
	return to
}

// renew gives a new value to a variable that stays in its register.
func (c *compiler) renew(to Vec, s *ast.AssignStmt) {
	e := assigned(s, 0).(*ast.BinaryExpr)
	x, y := c.both(e.X, e.Y)
	a := c.register(x)
	c.f.vecOp(operations[e.Op], to, a, y)
	c.regs.free(a)
	c.regs.free(y)
}

// assign gives a register to a variable, or to a number of a slice, which is stored.
func (c *compiler) assign(to ast.Expr, r Vec) {
	name := text(to)
	if x, is := to.(*ast.IndexExpr); is {
		c.part.put(c.bases[text(x.X)], r)
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
	return r + c.part.h, is
}

// add adds to a sum, or takes a maximum or a minimum with it.
func (c *compiler) add(sum Vec, s *ast.AssignStmt) {
	e, op := s.Rhs[0], opAdd
	if call, is := e.(*ast.CallExpr); is && s.Tok == token.ASSIGN {
		e, op = call.Args[1], map[string]Op{"max": opMax, "min": opMin}[text(call.Fun)]
	}
	r := c.register(c.value(e))
	if c.part.tail {
		r = c.own(r)
		c.f.hold(r)
	}
	c.joins[sum-c.part.h] = op
	c.f.vecOp(op, sum, sum, r)
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
		c.left[text(cond.Y)] -= 2
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
	compare := func() { f.compare(f.mask(t), a, comparisons[cond.Op], y) }
	once := skip || !c.long() // logarithms have the same mask in AVX-512
	if once {
		compare()
	}
	if skip {
		f.x86("VMOVMSKPD", t, R12)
		f.branch(R12, EQ, Imm(0), none)
	}
	c.regs.waiting[a]++
	for _, s := range s.Body.List {
		s := s.(*ast.AssignStmt)
		no := c.read(s.Lhs[0])
		c.regs.waiting[no]++
		yes := c.value(s.Rhs[0])
		if !once {
			compare()
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
