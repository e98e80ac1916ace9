class Quantmf < Formula
  desc "Matrix factorisation for features on different scales"
  homepage "https://github.com/quantmf/quantmf"
  url "https://github.com/quantmf/quantmf/releases/download/v@VERSION@/quantmf-source.tar.gz"
  version "@VERSION@"
  sha256 "@SHA256@"
  license "BSD-3-Clause"

  depends_on "go" => :build

  def install
    ENV["CGO_ENABLED"] = "0"
    system "go", "build", *std_go_args(ldflags: "-s -w -X main.released=v#{version}"), "./cmd/quantmf"
    (man1/"quantmf.1").write Utils.safe_popen_read(bin/"quantmf", "help", "-man")
    generate_completions_from_executable(bin/"quantmf", "completion")
  end

  test do
    (testpath/"m.csv").write "g,a,b,c,d\nx,1,2,3,4\ny,2,9,31,80\n"
    system bin/"quantmf", "fit", "-k", "1", "-o", "m.qmf", "-v", "v.tsv", "m.csv"
    assert_path_exists testpath/"m.qmf"
    assert_match version.to_s, shell_output("#{bin}/quantmf version")
  end
end
