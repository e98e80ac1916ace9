# Runs "install" and "test" of a formula over what stands for Homebrew, in folders of one's own:
#
#   ruby try.rb FORMULA SOURCE CELLAR RELEASE
#
# and checks that the sum it names is that of the source in RELEASE.
require "digest"
require "fileutils"
require "open3"
require "pathname"
require "tmpdir"

FORMULA, SOURCE, CELLAR, RELEASE = ARGV.map { |path| Pathname.new(path).expand_path }

# What a formula calls of Homebrew's class of that name.
class Formula
  class << self
    attr_reader :stated, :tested

    %i[desc homepage url version sha256 license depends_on].each do |name|
      define_method(name) { |value| (@stated ||= {})[name] = value }
    end

    def test(&block) = @tested = block
  end

  def version = self.class.stated.fetch(:version)
  def bin = CELLAR/"bin"
  def man1 = CELLAR/"share/man/man1"
  def testpath = @testpath ||= Pathname.new(Dir.mktmpdir)

  def system(*command)
    Kernel.system(*command.map(&:to_s)) or raise "#{command.join(" ")}: #{$?}"
  end

  def std_go_args(ldflags:) = ["-trimpath", "-o=#{bin/"quantmf"}", "-ldflags=#{ldflags}"]

  def generate_completions_from_executable(program, *arguments)
    %w[bash zsh fish].each { |shell| shell_output("#{program} #{arguments.join(" ")} #{shell}") }
  end

  def shell_output(command)
    output, status = Open3.capture2(command)
    raise "#{command}: #{status}" if !status.success? || output.empty?

    output
  end

  def assert_match(want, got) = got.include?(want) || raise("no #{want} in #{got}")
  def assert_path_exists(path) = path.exist? || raise("no #{path}")
end

module Utils
  def self.safe_popen_read(*command) = IO.popen(command.map(&:to_s), &:read)
end

[CELLAR/"bin", CELLAR/"share/man/man1"].each { |folder| FileUtils.mkdir_p(folder) }
require FORMULA.to_s
stated = Quantmf.stated
raise "the sum of the source" if stated[:sha256] != Digest::SHA256.file(RELEASE/"quantmf-source.tar.gz").hexdigest
raise "the description: at most 80 letters, no article" if stated[:desc].size > 80 || stated[:desc].match?(/\A(an?|the) /i)

formula = Quantmf.new
Dir.chdir(SOURCE) { formula.install }
raise "no manual page" unless (CELLAR/"share/man/man1/quantmf.1").read.start_with?(".TH")

Dir.chdir(formula.testpath) { formula.instance_exec(&Quantmf.tested) }
puts "the formula installs and passes its test"
