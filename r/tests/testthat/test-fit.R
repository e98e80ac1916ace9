set.seed(1)
x <- matrix(rgamma(25 * 3, 1), 25) %*% matrix(rgamma(3 * 60, 1), 3)
x <- (x + 0.1)^runif(25, 0.5, 2) * runif(25, 0.1, 100)
dimnames(x) <- list(paste0("g", 1:25), paste0("s", 1:60))

fits <- list(nmf = function(x) fit_nmf(x, 3), qmf = function(x) fit_qmf(x, 3), qmfq = function(x) fit_qmfq(x, 3, epochs = 10), bqmf = fit_bqmf)

for (name in names(fits)) {
  test_that(paste(name, "has names, sizes and a file"), {
    m <- fits[[name]](x)
    expect_equal(rownames(m$u), rownames(x))
    expect_equal(colnames(m$v), colnames(x))
    expect_lt(m$history[length(m$history)], m$history[1])
    expect_equal(dimnames(fitted(m)), dimnames(x))
    path <- tempfile()
    write_model(m, path)
    expect_equal(unname(read_model(path)$u), unname(m$u))
    expect_output(print(m), toupper(name))
  })
  test_that(paste(name, "says the same of new samples one by one and together"), {
    m <- fits[[name]](x[, 1:50])
    new <- x[, 51:60]
    new[3, 2] <- NA
    said <- predict(m, new)
    expect_equal(dim(said), dim(new))
    expect_false(anyNA(said))
    expect_equal(said[, 4], predict(m, new[, 4, drop = FALSE])[, 1], tolerance = 1e-6)
    expect_length(predict(m, new, "scores"), 10)
    expect_equal(ncol(predict(m, new, "coordinates")), 10)
  })
}

test_that("bits are those of the command", {
  skip_if(!nzchar(quantmf:::program()))
  path <- tempfile(fileext = ".tsv")
  write.table(format(x, digits = 17, trim = TRUE), path, sep = "\t", quote = FALSE, col.names = NA)
  u <- tempfile(fileext = ".tsv")
  system2(quantmf:::program(), c("fit", "-method", "qmf", "-k", "3", "-progress", "none", "-u", u, path),
    stderr = FALSE)
  expect_identical(as.matrix(read.delim(u, row.names = 1)), fit_qmf(x, 3)$u)
})

test_that("a sparse Matrix is its dense form", {
  skip_if_not_installed("Matrix")
  s <- Matrix::rsparsematrix(30, 80, 0.3, rand.x = function(n) rgamma(n, 1) + 0.5)
  expect_identical(fit_nmf(s, 2)$bytes, fit_nmf(as.matrix(s), 2)$bytes)
})

test_that("missing cells are filled in, and others stay", {
  holes <- x
  holes[sample(length(x), 100)] <- NA
  filled <- impute(holes, level = 0.9)
  seen <- !is.na(holes)
  expect_identical(filled[seen], x[seen])
  expect_lt(mean(abs(log(filled / x))[!seen]), 0.5 * mean(abs(log(apply(holes, 1, median, na.rm = TRUE) / x))[!seen]))
  inside <- attr(filled, "low") <= x & x <= attr(filled, "high")
  expect_gt(mean(inside[!seen]), 0.8)
})

test_that("samples weigh, and a model goes on", {
  twice <- fit_nmf(x, 3, sample_weights = rep(1:2, 30))
  expect_false(identical(twice$u, fit_nmf(x, 3)$u))
  expect_equal(fit_nmf(x, 3, model = twice)$history[1], fit_nmf(x, 3, model = twice, epochs = 0)$history[1])
  first <- fit_bqmf(x[, 1:30], 3)
  more <- update(first, x[, 31:60])
  expect_equal(dimnames(more$v), dimnames(first$v))
  expect_false(identical(more$u, first$u))
})

test_that("errors have the fields of the engine's", {
  bad <- x
  bad[2, 5] <- -1
  e <- tryCatch(fit_qmf(bad, 3), error = identity)
  expect_s3_class(e, "quantmf_error")
  expect_equal(c(e$row, e$column, e$value), c(1, 4, -1))
  expect_error(fit_qmf(x, 3, learning_rate = -1), "learningRate")
  expect_error(fit_qmf("a", 3), "matrix")
  expect_error(fit_nmf(x, 0), "rank")
})

test_that("ranks and sorting", {
  expect_equal(soft_rank(c(3, 1, 2), 0), c(3, 1, 2))
  expect_equal(soft_sort(c(3, 1, 2), 0), c(1, 2, 3))
})

test_that("a consensus says which components come back", {
  true <- consensus(x, 3, seeds = 5, loss = "kl")
  expect_length(true$stability, 3)
  expect_equal(unname(colSums(true$u)), rep(1, 3), tolerance = 1e-9)
  expect_gt(true$overall, consensus(x, 8, seeds = 5, loss = "kl")$overall)
})
