#include "parser/parser.h"

#include "parser/body_parser.h"
#include "parser/token_stream.h"

namespace emu {
namespace {

class ModuleParser {
  public:
    explicit ModuleParser(const std::string& ptx)
        : tokens_(tokenise(ptx)), module_(std::make_unique<Module>()) {
        module_->text = ptx;
    }

    std::unique_ptr<Module> run() {
        while (!tokens_.at_end()) parse_directive();
        return std::move(module_);
    }

  private:
    void parse_directive() {
        const int line = tokens_.line();
        const std::string word = tokens_.word();
        if (word == ".version" || word == ".address_size")
            tokens_.next();
        else if (word == ".target")
            parse_target();
        else if (word == ".file")
            parse_file();
        else if (word == ".section") {
            tokens_.next();
            tokens_.skip_balanced("{", "}");
        } else if (word == ".visible" || word == ".weak" || word == ".extern" || word == ".common")
            linkage_ = word;
        else if (word == ".entry")
            parse_entry();
        else if (word == ".func")
            parse_func(line);
        else if (word == ".global" || word == ".const" || word == ".shared")
            parse_variable(word);
        else if (word == ".pragma")
            tokens_.skip_past(";");
        else
            fault("PTX line %d: unknown directive '%s'", line, word.c_str());
    }

    void parse_target() {
        module_->target = tokens_.word();
        while (tokens_.accept(",")) tokens_.word();
    }

    void parse_file() {
        const int index = static_cast<int>(tokens_.integer());
        module_->files[index] = std::string(tokens_.next().text);
        while (tokens_.accept(",")) tokens_.next();
    }

    void parse_variable(const std::string& space) {
        const Variable variable = parse_variable_declaration(tokens_);
        if (space == ".shared") {
            module_shared_.push_back({variable, linkage_ == ".extern"});
        } else {
            GlobalSymbol symbol{variable.name, variable.bytes,
                                std::make_unique<uint8_t[]>(variable.bytes + 16)};
            std::copy(variable.initial.begin(), variable.initial.end(), symbol.data.get());
            module_->globals.push_back(std::move(symbol));
        }
        linkage_.clear();
    }

    // Only declarations of vprintf, __assertfail and the like are expected: everything else is inlined.
    void parse_func(int line) {
        if (tokens_.peek().is("(")) tokens_.skip_balanced("(", ")");
        const std::string name = tokens_.word();
        if (tokens_.peek().is("(")) tokens_.skip_balanced("(", ")");
        while (!tokens_.peek().is(";") && !tokens_.peek().is("{")) tokens_.next();
        if (tokens_.peek().is("{"))
            fault("PTX line %d: .func %s has a body; device functions are not supported", line, name.c_str());
        tokens_.next();
        linkage_.clear();
    }

    void parse_entry() {
        auto kernel = std::make_unique<Kernel>();
        kernel->name = tokens_.word();
        linkage_.clear();
        if (tokens_.peek().is("(")) parse_params(*kernel);
        parse_performance_directives(*kernel);
        parse_body(tokens_, *module_, *kernel, module_shared_);
        module_->kernels.push_back(std::move(kernel));
    }

    void parse_params(Kernel& kernel) {
        tokens_.expect("(");
        while (!tokens_.accept(")")) {
            tokens_.expect(".param");
            const Variable variable = parse_variable_declaration(tokens_);
            const auto offset = round_up<uint32_t>(kernel.param_bytes, variable.align);
            kernel.params.push_back({variable.name, offset, static_cast<uint32_t>(variable.bytes)});
            kernel.param_bytes = offset + static_cast<uint32_t>(variable.bytes);
            tokens_.accept(",");
        }
    }

    void parse_performance_directives(Kernel& kernel) {
        while (!tokens_.peek().is("{")) {
            const int line = tokens_.line();
            const std::string word = tokens_.word();
            uint32_t dims[3] = {1, 1, 1};
            if (tokens_.peek().kind == Token::Kind::kNumber) {
                int count = 0;
                do dims[count++] = static_cast<uint32_t>(tokens_.integer());
                while (tokens_.accept(",") && count < 3);
            }
            if (word == ".maxntid" || word == ".reqntid")
                kernel.max_threads = dims[0] * dims[1] * dims[2];
            else if (word == ".reqnctapercluster")
                std::copy(dims, dims + 3, kernel.required_cluster);
            else if (word != ".minnctapersm" && word != ".maxnreg" && word != ".explicitcluster" &&
                     word != ".maxclusterrank" && word != ".noreturn")
                fault("PTX line %d: unknown performance directive '%s'", line, word.c_str());
        }
    }

    TokenStream tokens_;
    std::unique_ptr<Module> module_;
    std::vector<SharedVariable> module_shared_;
    std::string linkage_;
};

}  // namespace

std::unique_ptr<Module> parse_module(const std::string& ptx) {
    return ModuleParser(ptx).run();
}

const Kernel* Module::find(const std::string& name) const {
    for (const auto& kernel : kernels)
        if (kernel->name == name) return kernel.get();
    return nullptr;
}

std::string Module::ptx_line(int line) const {
    size_t at = 0;
    for (int i = 1; i < line && at != std::string::npos; ++i) at = text.find('\n', at) + 1;
    const size_t end = text.find('\n', at);
    const std::string found = text.substr(at, end == std::string::npos ? end : end - at);
    const size_t first = found.find_first_not_of(" \t");
    return first == std::string::npos ? "" : found.substr(first);
}

std::string Module::describe_location(const Instr& instr) const {
    if (instr.location < 0) return "";
    const SourceLocation& where = locations[instr.location];
    const auto file = files.find(where.file);
    return format("%s:%d", file == files.end() ? "?" : file->second.c_str(), where.line);
}

}  // namespace emu
