#include "parser/body_parser.h"

#include "parser/decode.h"
#include "parser/symbols.h"

namespace emu {
namespace {

class BodyParser {
  public:
    BodyParser(TokenStream& tokens, Module& module, Kernel& kernel)
        : tokens_(tokens), module_(module), kernel_(kernel), symbols_(kernel) {}

    void run(const std::vector<SharedVariable>& module_shared) {
        for (const ParamInfo& param : kernel_.params)
            symbols_.bind(param.name, symbols_.symbol_slot(SlotInit::Kind::kParam, param.offset),
                          ScalarType::kB64);
        for (const GlobalSymbol& global : module_.globals)
            symbols_.bind(
                global.name,
                symbols_.symbol_slot(SlotInit::Kind::kGlobal, reinterpret_cast<uint64_t>(global.data.get())),
                ScalarType::kB64);
        for (const SharedVariable& shared : module_shared)
            if (!shared.is_dynamic) place_shared(shared.variable);
        for (const SharedVariable& shared : module_shared)
            if (shared.is_dynamic) dynamic_.push_back(shared.variable);
        bind_dynamic_shared_names();
        tokens_.expect("{");
        for (int depth = 1; depth > 0;) depth += parse_statement();
        finish();
    }

  private:
    int parse_statement() {
        if (tokens_.accept("{")) {
            symbols_.open_scope();
            return 1;
        }
        if (tokens_.accept("}")) {
            symbols_.close_scope();
            return -1;
        }
        if (tokens_.accept(";")) return 0;
        if (tokens_.at_end()) fault("PTX ends inside kernel %s", kernel_.name.c_str());
        if (tokens_.peek().kind == Token::Kind::kWord && tokens_.peek(1).is(":")) {
            parse_label();
            return 0;
        }
        if (!tokens_.peek().is("@") && tokens_.peek().text.starts_with(".")) {
            parse_directive();
            return 0;
        }
        parse_instruction();
        return 0;
    }

    void parse_label() {
        const std::string name = tokens_.word();
        tokens_.expect(":");
        if (!tokens_.accept(".branchtargets")) {
            symbols_.define_label(name, static_cast<int>(kernel_.code.size()));
            return;
        }
        std::vector<std::string>& targets = tables_[name];
        do targets.push_back(tokens_.word());
        while (tokens_.accept(","));
        tokens_.expect(";");
    }

    void parse_directive() {
        const int line = tokens_.line();
        const std::string word = tokens_.word();
        if (word == ".reg")
            parse_registers();
        else if (word == ".loc")
            parse_location();
        else if (word == ".shared" || word == ".shared::cta")
            place_shared(parse_variable_declaration(tokens_));
        else if (word == ".local" || word == ".param")
            place_local(parse_variable_declaration(tokens_));
        else if (word == ".pragma")
            tokens_.skip_past(";");
        else
            fault("PTX line %d: unknown directive '%s' in a kernel", line, word.c_str());
    }

    void parse_registers() {
        const int line = tokens_.line();
        ScalarType type = ScalarType::kNone;
        while (tokens_.peek().text.starts_with(".")) type = parse_type(tokens_.word().substr(1));
        if (type == ScalarType::kNone) fault("PTX line %d: .reg without a known type", line);
        do {
            const std::string name = tokens_.word();
            if (tokens_.accept("<")) {
                const int64_t count = tokens_.integer();
                tokens_.expect(">");
                for (int64_t i = 0; i < count; ++i) symbols_.declare(name + std::to_string(i), type);
            } else {
                symbols_.declare(name, type);
            }
        } while (tokens_.accept(","));
        tokens_.expect(";");
    }

    void parse_location() {
        const int file = static_cast<int>(tokens_.integer());
        const int line = static_cast<int>(tokens_.integer());
        const int statement_line = tokens_.line();
        tokens_.integer();
        module_.locations.push_back({file, line});
        // ", function_name $L__info_string0, inlined_at 1 20 3" may follow on the same line
        while (tokens_.line() == statement_line && tokens_.accept(",")) {
            while (tokens_.line() == statement_line && !tokens_.peek().is(",")) tokens_.next();
        }
    }

    void place_shared(const Variable& variable) {
        kernel_.static_smem_bytes = round_up(kernel_.static_smem_bytes, variable.align);
        symbols_.bind(variable.name, symbols_.symbol_slot(SlotInit::Kind::kShared, kernel_.static_smem_bytes),
                      ScalarType::kB64);
        kernel_.static_smem_bytes += static_cast<uint32_t>(variable.bytes);
    }

    void place_local(const Variable& variable) {
        kernel_.local_bytes = round_up(kernel_.local_bytes, std::max(variable.align, 8u));
        symbols_.bind(variable.name, symbols_.symbol_slot(SlotInit::Kind::kLocal, kernel_.local_bytes),
                      ScalarType::kB64);
        kernel_.local_bytes += static_cast<uint32_t>(variable.bytes);
    }

    // Dynamic shared memory starts behind the static variables, whose extent is known only at the end.
    void bind_dynamic_shared_names() {
        for (const Variable& variable : dynamic_) {
            kernel_.dynamic_smem_align = std::max(kernel_.dynamic_smem_align, variable.align);
            symbols_.bind(variable.name, symbols_.symbol_slot(SlotInit::Kind::kShared, kDynamicMarker),
                          ScalarType::kB64);
        }
    }

    void parse_instruction() {
        Instr instr;
        instr.line = tokens_.line();
        instr.location = static_cast<int>(module_.locations.size()) - 1;
        if (tokens_.accept("@")) {
            instr.guard_negated = tokens_.accept("!");
            const Symbol* guard = symbols_.find(tokens_.word());
            if (!guard) fault("PTX line %d: unknown guard predicate", instr.line);
            instr.guard = guard->slot;
        }
        instr.opcode = tokens_.word();
        if (!tokens_.peek().is(";")) {
            do instr.operands.push_back(parse_operand());
            while (tokens_.accept(","));
        }
        tokens_.expect(";");
        kernel_.code.push_back(std::move(instr));
    }

    Operand parse_operand() {
        Operand operand;
        if (tokens_.peek().is("[")) return parse_address();
        if (tokens_.peek().is("{")) {
            operand.kind = Operand::Kind::kVector;
            operand.elements = parse_vector();
            return operand;
        }
        if (tokens_.accept("(")) {  // argument list of a call
            operand.kind = Operand::Kind::kVector;
            while (!tokens_.accept(")")) {
                operand.elements.push_back(parse_slot(operand));
                tokens_.accept(",");
            }
            return operand;
        }
        operand.negated = tokens_.accept("!");
        operand.slot = parse_slot(operand);
        if (tokens_.accept("|")) operand.second = parse_slot(operand);
        if (tokens_.peek().is("+") && operand.slot >= 0) {  // mov.u64 %rd, symbol+16
            fault("PTX line %d: symbol+offset outside of brackets is not supported", tokens_.line());
        }
        return operand;
    }

    std::vector<int> parse_vector() {
        std::vector<int> elements;
        Operand scratch;
        tokens_.expect("{");
        while (!tokens_.accept("}")) {
            elements.push_back(parse_slot(scratch));
            tokens_.accept(",");
        }
        return elements;
    }

    Operand parse_address() {
        Operand operand;
        operand.kind = Operand::Kind::kAddress;
        tokens_.expect("[");
        operand.slot = parse_slot(operand);
        while (tokens_.accept("+")) operand.offset += tokens_.integer();
        if (tokens_.peek().is("-")) operand.offset += tokens_.integer();
        if (tokens_.accept(",")) operand.elements = parse_vector();
        if (tokens_.accept(",")) operand.extra = parse_vector();
        tokens_.expect("]");
        return operand;
    }

    // A register, immediate, symbol or special register; a name that is none of them is a label or a callee.
    int parse_slot(Operand& operand) {
        if (tokens_.peek().is("-") || tokens_.peek().kind == Token::Kind::kNumber)
            return symbols_.constant(parse_immediate());
        const std::string name = tokens_.word();
        if (name == "_") return kSinkSlot;
        if (const Symbol* symbol = symbols_.find(name)) {
            operand.is_wide = symbol->is_wide;
            return symbol->slot;
        }
        if (name == "WARP_SZ") return symbols_.constant(32);
        if (const int slot = symbols_.special(name); slot >= 0) return slot;
        operand.kind = Operand::Kind::kName;
        operand.name = name;
        operand.target = symbols_.scope();  // resolved in finish()
        return -1;
    }

    uint64_t parse_immediate() {
        const bool negative = tokens_.accept("-");
        const std::string text(tokens_.next().text);
        if (text.size() == 10 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F'))
            return (negative ? 0x80000000u : 0u) ^ std::strtoull(text.c_str() + 2, nullptr, 16);
        if (text.size() == 18 && text[0] == '0' && (text[1] == 'd' || text[1] == 'D'))
            return (negative ? uint64_t{1} << 63 : 0) ^ std::strtoull(text.c_str() + 2, nullptr, 16);
        char* end = nullptr;
        if (text.find('.') != std::string::npos)
            return to_bits(std::strtof(text.c_str(), nullptr));  // createpolicy fractions
        const uint64_t value = std::strtoull(text.c_str(), &end, 0);
        if (*end && std::string_view(end) != "U")
            fault("PTX line %d: malformed number '%s'", tokens_.line(), text.c_str());
        return negative ? ~value + 1 : value;
    }

    void finish() {
        const uint32_t dynamic_offset = round_up(kernel_.static_smem_bytes, kernel_.dynamic_smem_align);
        for (SlotInit& init : kernel_.inits)
            if (init.kind == SlotInit::Kind::kShared && init.value == kDynamicMarker)
                init.value = dynamic_offset;
        for (Instr& instr : kernel_.code) {
            resolve_names(instr);
            decode(instr, kernel_);
        }
        if (kernel_.code.empty() || kernel_.code.back().opcode != "ret") {
            Instr ret;
            ret.opcode = "ret";
            ret.line = tokens_.line();
            decode(ret, kernel_);
            kernel_.code.push_back(std::move(ret));
        }
    }

    void resolve_names(Instr& instr) {
        for (Operand& operand : instr.operands) {
            if (operand.kind != Operand::Kind::kName) continue;
            const int label = symbols_.find_label(operand.name, operand.target);
            if (label >= 0) {
                operand.kind = Operand::Kind::kLabel;
                operand.target = label;
                continue;
            }
            if (auto table = tables_.find(operand.name); table != tables_.end()) {
                for (const std::string& target : table->second)
                    instr.table.push_back(symbols_.find_label(target, operand.target));
                continue;
            }
            if (instr.opcode.starts_with("call")) continue;
            fault("PTX line %d: unknown name '%s' in '%s'", instr.line, operand.name.c_str(),
                  instr.opcode.c_str());
        }
    }

    static constexpr uint64_t kDynamicMarker = ~uint64_t{0};
    TokenStream& tokens_;
    Module& module_;
    Kernel& kernel_;
    FunctionSymbols symbols_;
    std::vector<Variable> dynamic_;
    std::unordered_map<std::string, std::vector<std::string>> tables_;
};

void append_initial_value(TokenStream& tokens, Variable& variable) {
    const int bytes = type_bytes(variable.type);
    const int64_t value = tokens.integer();
    for (int i = 0; i < bytes; ++i) variable.initial.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

}  // namespace

Variable parse_variable_declaration(TokenStream& tokens) {
    Variable variable;
    bool describes_pointee = false;  // ".ptr .global .align 16" speaks of what the pointer points to
    while (tokens.peek().text.starts_with(".")) {
        const std::string word = tokens.word();
        if (word == ".ptr") describes_pointee = true;
        if (word == ".align") {
            const auto align = static_cast<uint32_t>(tokens.integer());
            if (!describes_pointee) variable.align = align;
            continue;
        }
        if (word == ".attribute") {
            tokens.skip_balanced("(", ")");
            continue;
        }
        if (word == ".ptr" || word == ".global" || word == ".shared" || word == ".const" || word == ".v2" ||
            word == ".v4")
            continue;
        variable.type = parse_type(word.substr(1));
        if (variable.type == ScalarType::kNone)
            fault("PTX line %d: unknown type '%s'", tokens.line(), word.c_str());
    }
    variable.name = tokens.word();
    variable.bytes = static_cast<uint64_t>(type_bytes(variable.type));
    variable.align = std::max(variable.align, static_cast<uint32_t>(variable.bytes));
    while (tokens.accept("[")) {
        variable.bytes *= tokens.peek().is("]") ? 0 : static_cast<uint64_t>(tokens.integer());
        tokens.expect("]");
    }
    if (tokens.accept("=")) {
        if (tokens.accept("{")) {
            while (!tokens.accept("}")) {
                append_initial_value(tokens, variable);
                tokens.accept(",");
            }
        } else {
            append_initial_value(tokens, variable);
        }
    }
    tokens.accept(";");
    return variable;
}

void parse_body(TokenStream& tokens, Module& module, Kernel& kernel,
                const std::vector<SharedVariable>& module_shared) {
    BodyParser(tokens, module, kernel).run(module_shared);
}

}  // namespace emu
