# Blocks of docs/coming-from.md run as they stand; those of another package where that is installed.
page <- file.path(Sys.getenv("QUANTMF_SOURCE", "../../.."), "docs", "coming-from.md")

test_that("coming-from.md is true", {
  skip_if(!file.exists(page), "not in a checkout")
  text <- paste(readLines(page, encoding = "UTF-8"), collapse = "\n")
  found <- regmatches(text, gregexpr("```r\n[^`]*```", text))[[1]]
  expect_length(found, 3)
  set.seed(2)
  x <- matrix(rgamma(20 * 2, 1), 20) %*% matrix(rgamma(2 * 30, 1), 2) + 0.1
  dimnames(x) <- list(paste0("g", 1:20), paste0("s", 1:30))
  x[cbind(1:10, 3:12)] <- NA
  ran <- 0
  for (block in found) {
    code <- gsub("^```r\n|```$", "", block)
    if (!requireNamespace(sub(".*library\\((\\w+)\\).*", "\\1", code), quietly = TRUE)) next
    of <- new.env()
    of$x <- x
    eval(parse(text = code), of)
    expect_false(anyNA(of$filled))
    expect_equal(dim(of$filled), dim(x))
    ran <- ran + 1
  }
  expect_gte(ran, 1)
})

test_that("a SummarizedExperiment is its assay", {
  skip_if_not_installed("SummarizedExperiment")
  set.seed(3)
  x <- matrix(rgamma(200, 1), 10, dimnames = list(paste0("g", 1:10), paste0("s", 1:20)))
  se <- SummarizedExperiment::SummarizedExperiment(list(counts = x))
  expect_identical(fit_nmf(se, 2)$bytes, fit_nmf(x, 2)$bytes)
  x[2, 3] <- NA
  se <- SummarizedExperiment::SummarizedExperiment(list(counts = x))
  expect_identical(impute(se), impute(x))
})
