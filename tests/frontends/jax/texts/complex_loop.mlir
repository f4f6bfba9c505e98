module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5xcomplex<f32>>) -> (tensor<3x5xcomplex<f32>> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<3x5xcomplex<f32>>
    cond {
      %c_1 = stablehlo.constant dense<20> : tensor<i32>
      %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = func.call @closed_call(%iterArg_0) : (tensor<3x5xcomplex<f32>>) -> tensor<3x5xcomplex<f32>>
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %iterArg, %c_1 : tensor<i32>
      stablehlo.return %2, %1 : tensor<i32>, tensor<3x5xcomplex<f32>>
    }
    return %0#1 : tensor<3x5xcomplex<f32>>
  }
  func.func private @closed_call(%arg0: tensor<3x5xcomplex<f32>>) -> tensor<3x5xcomplex<f32>> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<3x5xcomplex<f32>>
    %1 = stablehlo.abs %arg0 : (tensor<3x5xcomplex<f32>>) -> tensor<3x5xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %3 = stablehlo.add %2, %1 : tensor<3x5xf32>
    %4 = stablehlo.convert %3 : (tensor<3x5xf32>) -> tensor<3x5xcomplex<f32>>
    %5 = stablehlo.divide %0, %4 : tensor<3x5xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<(0.000000e+00,1.000000e-01)> : tensor<complex<f32>>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<complex<f32>>) -> tensor<3x5xcomplex<f32>>
    %7 = stablehlo.add %5, %6 : tensor<3x5xcomplex<f32>>
    return %7 : tensor<3x5xcomplex<f32>>
  }
}
